(* Theorem B, presence, of docs/mathematics.md, section 5, for n people: a histogram whose small cells are suppressed
   hides whether the target is in a cell or absent as one count with a threshold does. First what is revealed. *)

From mathcomp Require Import all_ssreflect all_algebra.
From pkdp Require Import hockey_stick vertex waiting_time.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Revealed.

Variables (R : realFieldType) (U : finType).
Implicit Types (c p q : R) (D : U -> R) (Ds Es : seq (U -> R)) (slots : seq (U + R)).

(* The mean of g over independent records with laws Ds. *)
Fixpoint record_mean Ds (g : seq U -> R) : R :=
  if Ds is D :: Ds' then \sum_r D r * record_mean Ds' (fun records => g (r :: records)) else g [::].

(* The law of a function of the records. *)
Definition record_law (Y : finType) (g : seq U -> Y) Ds y : R := record_mean Ds (fun records => (g records == y)%:R).

(* The mean depends on the values of g only, *)
Lemma eq_record_mean Ds g h : g =1 h -> record_mean Ds g = record_mean Ds h.
Proof.
elim: Ds g h => [|D Ds IH] g h eq_gh //=; apply: eq_bigr => r _.
by rewrite (IH _ _ (fun t => eq_gh (_ :: t))).
Qed.

(* and is an affine function of each law. *)
Lemma record_mean_affine (I : finType) (w : I -> R) (E : I -> U -> R) D before after g :
  (forall r, D r = \sum_i w i * E i r) ->
  record_mean (before ++ D :: after) g = \sum_i w i * record_mean (before ++ E i :: after) g.
Proof.
move=> eq_D; elim: before g => [|D' before IH] g /=.
  under eq_bigr do rewrite eq_D mulr_suml; rewrite exchange_big; apply: eq_bigr => i _.
  by rewrite mulr_sumr; apply: eq_bigr => r _; rewrite mulrA.
under eq_bigr do rewrite IH mulr_sumr; rewrite exchange_big; apply: eq_bigr => i _.
by rewrite mulr_sumr; apply: eq_bigr => r _; rewrite mulrCA.
Qed.

(* The mean over records of a sum, *)
Lemma record_mean_sum (I : finType) Ds (g : I -> seq U -> R) :
  record_mean Ds (fun records => \sum_i g i records) = \sum_i record_mean Ds (g i).
Proof.
elim: Ds g => [|D Ds IH] g //=; rewrite [RHS]exchange_big; apply: eq_bigr => r _.
by rewrite IH mulr_sumr.
Qed.

(* and of a multiple. *)
Lemma record_mean_mulr Ds g (x : R) : record_mean Ds (fun records => g records * x) = record_mean Ds g * x.
Proof.
elim: Ds g => [|D Ds IH] g //=; rewrite mulr_suml; apply: eq_bigr => r _.
by rewrite IH mulrA.
Qed.

(* Only as many records as there are people matter. *)
Lemma record_mean_sized Ds g h : (forall records, size records = size Ds -> g records = h records) ->
  record_mean Ds g = record_mean Ds h.
Proof.
elim: Ds g h => [|D Ds IH] g h eq_gh /=; first exact: eq_gh.
by apply: eq_bigr => r _; congr (_ * _); apply: IH => t size_t; apply: eq_gh; rewrite /= size_t.
Qed.

(* The law of what a random map makes of a function of the records. *)
Lemma push_record_law (T Y : finType) (g : seq U -> T) (K : T -> Y -> R) Ds y :
  push K (record_law g Ds) y = record_mean Ds (fun records => K (g records) y).
Proof.
rewrite /push /record_law; under eq_bigr do rewrite -record_mean_mulr.
rewrite -record_mean_sum; apply: eq_record_mean => records /=; rewrite (bigD1 (g records)) //= eqxx mul1r.
by rewrite big1 ?addr0 // => t; rewrite eq_sym => /negbTE ->; rewrite mul0r.
Qed.

Variables a b : U.
Hypothesis a_b : a != b.

(* A law under which, told that the record is a or b, the chance of a is between lo and hi. *)
Definition told_between lo hi D :=
  [/\ forall r, 0 <= D r, \sum_r D r = 1 & lo * (D a + D b) <= D a <= hi * (D a + D b)].

(* What is revealed of a person: the record, which is neither a nor b; or that it is one of them, a with chance q. *)
Definition slot_law (slot : U + R) r : R :=
  match slot with inl known => (known == r)%:R | inr q => if r == a then q else if r == b then 1 - q else 0 end.

Definition slot_allowed lo hi (slot : U + R) :=
  match slot with inl known => (known != a) && (known != b) | inr q => lo <= q <= hi end.

(* Every law is a mixture of what can be revealed. *)
Lemma law_of_slots lo hi D : lo <= hi -> told_between lo hi D -> exists w q, [/\ forall i, 0 <= w i, \sum_i w i = 1,
  lo <= q <= hi & forall r, D r = \sum_i w i * slot_law (if (i == a) || (i == b) then inr q else inl i) r].
Proof.
move=> le_lo_hi [D_ge0 D_1 /andP[lo_D D_hi]]; have b_a : b != a by rewrite eq_sym.
have [q eq_q q_in] : exists2 q, (D a + D b) * q = D a & lo <= q <= hi.
  have := addr_ge0 (D_ge0 a) (D_ge0 b); rewrite le_eqVlt => /orP[/eqP sum_0|sum_gt0].
    exists lo; rewrite ?lexx // -sum_0 mul0r; apply/eqP; rewrite eq_sym; move/esym/eqP: sum_0.
    by rewrite paddr_eq0 // => /andP[].
  exists (D a / (D a + D b)); first by rewrite mulrC divfK // gt_eqF.
  by rewrite ler_pdivl_mulr // ler_pdivr_mulr // lo_D.
exists (fun i => if i == a then 0 else if i == b then D a + D b else D i), q; split=> //.
- by move=> i; case: ifP => // _; case: ifP => // _; apply: addr_ge0.
- rewrite -D_1 (bigD1 a) // [RHS](bigD1 a) //= [in LHS](bigD1 b) //= [in RHS](bigD1 b) //=.
  rewrite !eqxx (negbTE b_a) add0r addrA; congr (_ + _).
  by apply: eq_bigr => i /andP[/negbTE -> /negbTE ->].
move=> r; rewrite (bigD1 a) //= [in RHS](bigD1 b) //= !eqxx orbT (negbTE b_a) mul0r add0r.
rewrite [slot_law (inr q) r]/=; have [->|r_a] := eqVneq r a.
  rewrite eq_q big1 ?addr0 // => i /andP[i_a i_b].
  by rewrite (negbTE i_a) (negbTE i_b) /= (negbTE i_a) mulr0.
have [->|r_b] := eqVneq r b.
  rewrite mulrBr mulr1 eq_q [D a + D b]addrC addrK big1 ?addr0 // => i /andP[i_a i_b].
  by rewrite (negbTE i_a) (negbTE i_b) /= (negbTE i_b) mulr0.
rewrite mulr0 add0r (bigD1 r) /= ?r_a // (negbTE r_a) (negbTE r_b) /= eqxx mulr1 big1 ?addr0 //.
by move=> i /andP[/andP[/negbTE i_a /negbTE i_b] /negbTE i_r]; rewrite i_a i_b /= i_r mulr0.
Qed.

(* To reveal one person after another only helps: what bounds the divergence of all that is then left bounds it. What is
   shown of the records may be random. *)
Lemma reveal_random (Y : finType) (g g' : seq U -> Y -> R) c lo hi (B : R) Ds : lo <= hi ->
  (forall i, (i < size Ds)%N -> told_between lo hi (nth (fun _ => 0) Ds i)) ->
  let law h Es (y : Y) := record_mean Es (fun records => h records y) in
  (forall slots, size slots = size Ds -> all (slot_allowed lo hi) slots ->
     hockey c (law g (map slot_law slots)) (law g' (map slot_law slots)) <= B) ->
  hockey c (law g Ds) (law g' Ds) <= B.
Proof.
move=> le_lo_hi told law ends; suff step before after : all (slot_allowed lo hi) before ->
    (forall i, (i < size after)%N -> told_between lo hi (nth (fun _ => 0) after i)) ->
    (size before + size after = size Ds)%N ->
    hockey c (law g (map slot_law before ++ after)) (law g' (map slot_law before ++ after)) <= B.
  exact: (step [::] Ds).
elim: after before => [|D after IH] before ok told_after size_all.
  by rewrite cats0; apply: ends => //; rewrite -size_all addn0.
have [w [q [w_ge0 w_1 q_in eq_D]]] := law_of_slots le_lo_hi (told_after 0%N isT).
pose E i := slot_law (if (i == a) || (i == b) then inr q else inl i).
have mixture (h : seq U -> Y -> R) : law h (map slot_law before ++ D :: after)
    =1 fun y => \sum_i w i * law h (map slot_law before ++ E i :: after) y.
  by move=> y; apply: record_mean_affine.
rewrite (eq_hockey c (mixture g) (mixture g')).
apply: (le_trans (hockey_convex c _ _ w_ge0)); rewrite -[leRHS]mul1r -w_1 mulr_suml.
apply: ler_sum => i _; apply: ler_wpmul2l => //; rewrite /E -cat_rcons -map_rcons; apply: IH.
- by rewrite all_rcons ok andbT; case: ifP => //= /norP[-> ->].
- by move=> j lt_j; apply: (told_after j.+1).
by rewrite size_rcons addSnnS.
Qed.

Lemma reveal (Y : finType) (g g' : seq U -> Y) c lo hi (B : R) Ds : lo <= hi ->
  (forall i, (i < size Ds)%N -> told_between lo hi (nth (fun _ => 0) Ds i)) ->
  (forall slots, size slots = size Ds -> all (slot_allowed lo hi) slots ->
     hockey c (record_law g (map slot_law slots)) (record_law g' (map slot_law slots)) <= B) ->
  hockey c (record_law g Ds) (record_law g' Ds) <= B.
Proof.
by move=> le told; apply: (reveal_random (g := fun t y => (g t == y)%:R) (g' := fun t y => (g' t == y)%:R) le told).
Qed.

(* The chances of those who are a or b; and all records, when some of these coins show a. *)
Definition chances slots : seq R := pmap (fun slot => if slot is inr q then Some q else None) slots.
Fixpoint filled slots (tosses : seq bool) : seq U :=
  match slots with
  | [::] => [::]
  | inl known :: slots' => known :: filled slots' tosses
  | inr _ :: slots' => (if head false tosses then a else b) :: filled slots' (behead tosses)
  end.

(* What is left when all is revealed: coins. *)
Lemma record_mean_slots slots g :
  record_mean (map slot_law slots) g = mean (chances slots) (fun tosses => g (filled slots tosses)).
Proof.
have b_a : b != a by rewrite eq_sym.
elim: slots g => [//|[known|q] slots IH] g /=.
  rewrite (bigD1 known) //= eqxx mul1r IH big1 ?addr0 // => r.
  by rewrite eq_sym => /negbTE ->; rewrite mul0r.
rewrite (bigD1 a) //= (bigD1 b) //= !eqxx (negbTE b_a) big1 ?addr0 ?IH // => r /andP[/negbTE -> /negbTE ->].
by rewrite mul0r.
Qed.

(* How often each record occurs then. *)
Lemma count_filled slots tosses u : size tosses = size (chances slots) ->
  count_mem u (filled slots tosses) = (count (pred1 (inl u)) slots + (u == a) * successes tosses
    + (u == b) * (size tosses - successes tosses))%N.
Proof.
elim: slots tosses => [|[known|q] slots IH] tosses /=; first by move/size0nil => ->; rewrite !muln0.
  by move=> size_t; rewrite IH // !addnA; congr (_ + _ + _ + _)%N; rewrite [in RHS]/eq_op.
case: tosses => [//|toss tosses] /= [size_t]; rewrite IH //; have := count_size id tosses; rewrite -/(successes tosses).
case: toss => le_s; rewrite !(eq_sym _ u) /successes /= -/(successes tosses).
  by rewrite add0n add1n subSS mulnS !addnA [((u == a) + _)%N]addnC.
by rewrite add0n subSn // mulnS [RHS]addnCA.
Qed.

Lemma count_allowed lo hi slots u : all (slot_allowed lo hi) slots -> (u == a) || (u == b) ->
  count (pred1 (inl u)) slots = 0%N.
Proof.
move=> ok u_ab; apply/eqP; rewrite -leqn0 leqNgt -has_count; apply/hasPn => slot /(allP ok).
case: slot => [known|q] //= /andP[/negbTE k_a /negbTE k_b]; apply: contraTN u_ab => /eqP[<-].
by rewrite k_a k_b.
Qed.

Lemma chances_allowed lo hi slots : all (slot_allowed lo hi) slots -> all (fun q => lo <= q <= hi) (chances slots).
Proof. by elim: slots => [|[known|q] slots IH] //= /andP[ok /IH]; rewrite ?ok. Qed.

Lemma size_chances slots : (size (chances slots) <= size slots)%N.
Proof. by rewrite size_pmap count_size. Qed.

End Revealed.

Section Histogram.

Variables (R : realFieldType) (V : finType).
Implicit Types (c p : R) (v u : V) (r : option V) (D : option V -> R).
Implicit Types (Ds : seq (option V -> R)) (records : seq (option V)).

(* A map is a random map without randomness. *)
Lemma kernel_map (O Y : finType) (f : O -> Y) : kernel (fun o y => (f o == y)%:R : R).
Proof.
move=> o; split=> [y|]; first exact: ler0n.
by rewrite (bigD1 (f o)) //= eqxx big1 ?addr0 // => y /negbTE; rewrite eq_sym => ->.
Qed.

(* The law of f(what is shown of a count) is the image under f of the law of what is shown. *)
Lemma push_map (O Y : finType) (shown : nat -> O) (f : O -> Y) (ps : seq R) y :
  push (fun o y => (f o == y)%:R) (seen (fun x o => (shown x == o)%:R) ps) y
  = mean ps (fun tosses => (f (shown (successes tosses)) == y)%:R).
Proof.
rewrite /push /seen /mean_count; under eq_bigr do rewrite -mean_mulr.
rewrite -mean_sum; apply: eq_mean => t /=; rewrite (bigD1 (shown (successes t))) //= eqxx mul1r.
by rewrite big1 ?addr0 // => o; rewrite eq_sym => /negbTE ->; rewrite mul0r.
Qed.

(* A record is a cell, or None: absent. Of each cell its count is published when it is at least k, else nothing. *)
Definition table n k records : {ffun V -> option 'I_n.+2} :=
  [ffun u => thresholded n k (count_mem (Some u) records)].

(* The law of the table when the target's record is r. *)
Definition histogram n k r Ds y : R := record_law (fun records => table n k (r :: records)) Ds y.
Arguments histogram n k r Ds y : clear implicits.

(* A law under which, told that the record is v or absent, the chance of v is at most p. *)
Definition told_at_most v p D := [/\ forall r, 0 <= D r, \sum_r D r = 1 & D (Some v) <= p * (D (Some v) + D None)].

(* Theorem B, presence: for at most n people, each of whom, told that the record is v or absent, is in v with a chance
   of at most p, the waiting times dominate the table with the target in v and absent, in both orders. *)
Theorem theorem_B_presence c p n k v Ds : (0 < k)%N -> 0 <= p <= 1 -> (size Ds <= n)%N ->
  (forall i, (i < size Ds)%N -> told_at_most v p (nth (fun _ => 0) Ds i)) ->
  hockey c (histogram n k (Some v) Ds) (histogram n k None Ds) <= hockey c (@waiting R n p k.-1) (waiting p k) /\
  hockey c (histogram n k None Ds) (histogram n k (Some v) Ds) <= hockey c (@waiting R n p k) (waiting p k.-1).
Proof.
move=> k_gt0 p_01 le_n told; have p_ge0 : 0 <= p by case/andP: p_01.
have between i : (i < size Ds)%N -> told_between (Some v) None 0 p (nth (fun _ => 0) Ds i).
  by move=> /told[D_ge0 D_1 D_v]; split; rewrite // mul0r D_ge0.
have ends slots : size slots = size Ds -> all (slot_allowed (Some v) None 0 p) slots ->
    exists f : option 'I_n.+2 -> {ffun V -> option 'I_n.+2}, let law := map (slot_law (Some v) None) slots in
    histogram n k (Some v) law
      =1 push (fun o y => (f o == y)%:R) (seen (@release R n k \o succn) (chances slots)) /\
    histogram n k None law =1 push (fun o y => (f o == y)%:R) (seen (@release R n k) (chances slots)).
  move=> size_slots ok.
  exists (fun o => [ffun u => if u == v then o else thresholded n k (count (pred1 (inl (Some u))) slots)]).
  have counted u tosses : size tosses = size (chances slots) ->
      count_mem (Some u) (filled (Some v) None slots tosses)
      = (count (pred1 (inl (Some u))) slots + (u == v) * successes tosses)%N.
    by move=> size_t; rewrite count_filled // addn0.
  have none : count (pred1 (inl (Some v))) slots = 0%N by apply: (count_allowed ok); rewrite eqxx.
  split=> y; rewrite push_map /histogram /record_law record_mean_slots //; apply: mean_sized => tosses size_t;
    congr (_ == _)%:R; apply/ffunP => u; rewrite !ffunE /= counted //.
    have [->|ne] := eqVneq u v; first by rewrite none mul1n eqxx.
    by rewrite -[Some v == _]/(v == u) eq_sym (negbTE ne) mul0n addn0.
  by have [->|ne] := eqVneq u v; rewrite ?none ?mul1n // mul0n addn0.
have le_chances (slots : seq (option V + R)) : size slots = size Ds -> (size (chances slots) <= n)%N.
  by move=> size_slots; rewrite (leq_trans _ le_n) // -size_slots size_chances.
split; apply: (reveal (a := Some v) (b := None) _ p_ge0 between) => // slots size_slots ok;
  have [f [present absent]] := ends _ size_slots ok;
  have [A A'] := theorem_A c k_gt0 p_01 (chances_allowed ok) (le_chances _ size_slots).
  exact: le_trans (image_le c (kernel_map f) present absent) A.
exact: le_trans (image_le c (kernel_map f) absent present) A'.
Qed.

End Histogram.
