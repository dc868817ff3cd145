(* Theorem B, presence, of docs/mathematics.md, section 5, for n people: a histogram whose small cells are suppressed
   hides whether the target is in a cell or absent as one count with a threshold does. *)

From mathcomp Require Import all_ssreflect all_algebra.
From pkdp Require Import hockey_stick vertex waiting_time.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Histogram.

Variables (R : realFieldType) (V : finType).
Implicit Types (c p : R) (v u : V) (r : option V) (D : option V -> R) (records known : seq (option V)).

(* The mean of g over independent records with laws Ds. A record is a cell, or None: absent. *)
Fixpoint record_mean (Ds : seq (option V -> R)) (g : seq (option V) -> R) : R :=
  if Ds is D :: Ds' then \sum_r D r * record_mean Ds' (fun records => g (r :: records)) else g [::].

(* What is published: of each cell its count when it is at least k, else nothing. *)
Definition table n k records : {ffun V -> option 'I_n.+2} :=
  [ffun u => thresholded n k (count_mem (Some u) records)].

(* The law of the table when the target's record is r. *)
Definition histogram n k r Ds y : R := record_mean Ds (fun records => (table n k (r :: records) == y)%:R).

(* A law under which, told that the record is v or absent, the chance of v is at most p. *)
Definition told_at_most v p D := [/\ forall r, 0 <= D r, \sum_r D r = 1 & D (Some v) <= p * (D (Some v) + D None)].

(* The mean depends on the values of g only. *)
Lemma eq_record_mean Ds g h : g =1 h -> record_mean Ds g = record_mean Ds h.
Proof.
elim: Ds g h => [|D Ds IH] g h eq_gh //=; apply: eq_bigr => r _.
by rewrite (IH _ _ (fun t => eq_gh (_ :: t))).
Qed.

(* Some records are known and neither v nor absent; x more are v; the others are drawn. *)
Definition partly n k v r known x records : {ffun V -> option 'I_n.+2} :=
  [ffun u => thresholded n k (count_mem (Some u) (r :: known ++ records) + (u == v) * x)].

(* The law when of the people who are v or absent some are drawn as coins. *)
Definition partly_law n k v r known ps Ds y : R :=
  mean_count ps (fun x => record_mean Ds (fun records => (partly n k v r known x records == y)%:R)).

Arguments histogram n k r Ds y : clear implicits.
Arguments partly_law n k v r known ps Ds y : clear implicits.

(* Next person: revealed when neither v nor absent, else one more coin. *)
Lemma partly_next n k v r known ps D Ds q y : (D (Some v) + D None) * q = D (Some v) ->
  partly_law n k v r known ps (D :: Ds) y
  = \sum_i (if i == Some v then 0 else if i == None then D (Some v) + D None else D i)
      * (if (i == Some v) || (i == None) then partly_law n k v r known (q :: ps) Ds y
         else partly_law n k v r (i :: known) ps Ds y).
Proof.
move=> eq_q; have eq_q' : (D (Some v) + D None) * (1 - q) = D None by rewrite mulrBr mulr1 eq_q addrC addKr.
have -> : partly_law n k v r known ps (D :: Ds) y = \sum_i D i * mean_count ps (fun x =>
    record_mean Ds (fun records => (partly n k v r known x (i :: records) == y)%:R)).
  rewrite /partly_law /mean_count /= -[RHS](eq_bigr _ (fun i _ => mulrC _ _)).
  under [RHS]eq_bigr do rewrite -mean_mulr.
  by rewrite -mean_sum; apply: eq_mean => t /=; apply: eq_bigr => i _; rewrite mulrC.
rewrite [LHS](bigD1 (Some v)) // [RHS](bigD1 (Some v)) //= [in LHS](bigD1 None) //= [in RHS](bigD1 None) //=.
rewrite !eqxx mul0r add0r addrA; congr (_ + _).
  rewrite /partly_law mean_count_cons mulrDr !mulrA eq_q eq_q'; congr (_ * _ + _ * _).
    apply: eq_mean => t; apply: eq_record_mean => records; congr (_ == _)%:R; apply/ffunP => u; rewrite !ffunE.
    congr (thresholded _ _ _); rewrite /= !count_cat /= mulnS -[u == v]/(Some u == Some v) [Some v == _]eq_sym.
    by rewrite -!addnA; congr (_ + (_ + _))%N; rewrite addnCA.
  apply: eq_mean => t; apply: eq_record_mean => records; congr (_ == _)%:R; apply/ffunP => u; rewrite !ffunE.
  by congr (thresholded _ _ _); rewrite /= !count_cat.
apply: eq_bigr => i /andP[/negbTE -> /negbTE ->]; congr (_ * _).
apply: eq_mean => t; apply: eq_record_mean => records; congr (_ == _)%:R; apply/ffunP => u; rewrite !ffunE.
by congr (thresholded _ _ _); rewrite /= !count_cat /= [(_ + (_ + count_mem _ records))%N]addnCA.
Qed.

(* When no more records are to be drawn, the table is an image of one count with a threshold. *)
Lemma partly_end n k v known ps y : Some v \notin known ->
  partly_law n k v (Some v) known ps [::] y
    = push (fun o y => ([ffun u => if u == v then o else partly n k v None known 0 [::] u] == y)%:R)
        (seen (@release R n k \o succn) ps) y /\
  partly_law n k v None known ps [::] y
    = push (fun o y => ([ffun u => if u == v then o else partly n k v None known 0 [::] u] == y)%:R)
        (seen (@release R n k) ps) y.
Proof.
move=> v_new; have none : count_mem (Some v) known = 0%N by apply/count_memPn.
suff image (e : bool) r (K : nat -> option 'I_n.+2 -> R) : r = (if e then Some v else None) ->
    (forall x o, K x o = (thresholded n k (e + x) == o)%:R) ->
    partly_law n k v r known ps [::] y
    = push (fun o y => ([ffun u => if u == v then o else partly n k v None known 0 [::] u] == y)%:R) (seen K ps) y.
  by split; [apply: (image true) | apply: (image false)].
move=> -> eq_K; rewrite /push /seen /mean_count; under eq_bigr do rewrite -mean_mulr.
rewrite -mean_sum; apply: eq_mean => t /=; rewrite (bigD1 (thresholded n k (e + successes t))) //= eq_K eqxx mul1r.
rewrite big1 ?addr0 => [|o]; last by rewrite eq_K eq_sym => /negbTE ->; rewrite mul0r.
congr (_ == _)%:R; apply/ffunP => u; rewrite !ffunE /= !cats0.
have [->|ne] := eqVneq u v; last first.
  by rewrite !mul0n; case: e {eq_K}; rewrite /= ?[Some v == _]eq_sym ?(negbTE (ne : Some u != Some v)).
by rewrite none mul1n addn0; case: e {eq_K}; rewrite /= ?eqxx.
Qed.

(* Drawing one person after another, what bounds the divergence in the end bounds it from the start. *)
Lemma partly_le n k v r r' c p (B : R) Ds known ps : 0 <= p ->
  (forall known ps, Some v \notin known -> all (fun q => 0 <= q <= p) ps -> (size ps <= n)%N ->
     hockey c (partly_law n k v r known ps [::]) (partly_law n k v r' known ps [::]) <= B) ->
  (forall i, (i < size Ds)%N -> told_at_most v p (nth (fun _ => 0) Ds i)) ->
  Some v \notin known -> all (fun q => 0 <= q <= p) ps -> (size ps + size Ds <= n)%N ->
  hockey c (partly_law n k v r known ps Ds) (partly_law n k v r' known ps Ds) <= B.
Proof.
move=> p_ge0 ends; elim: Ds known ps => [|D Ds IH] known ps told v_new in_0p; first by rewrite addn0; apply: ends.
rewrite /= addnS -addSn => le_n; have [D_ge0 D_1 D_v] := told 0%N isT.
have {}IH := IH _ _ (fun i lt_i => told i.+1 lt_i).
have [q q_0p eq_q] : exists2 q, 0 <= q <= p & (D (Some v) + D None) * q = D (Some v).
  have := addr_ge0 (D_ge0 (Some v)) (D_ge0 None); rewrite le_eqVlt => /orP[/eqP sum_0|sum_gt0].
    exists 0; rewrite ?lexx // mulr0; apply/eqP; rewrite eq_sym; move/esym/eqP: sum_0.
    by rewrite paddr_eq0 // => /andP[].
  exists (D (Some v) / (D (Some v) + D None)); last by rewrite mulrC divfK // gt_eqF.
  by rewrite divr_ge0 ?(ltW sum_gt0) //= ler_pdivr_mulr.
pose w i := if i == Some v then 0 else if i == None then D (Some v) + D None else D i.
have w_ge0 i : 0 <= w i by rewrite /w; case: ifP => // _; case: ifP => // _; apply: addr_ge0.
have w_1 : \sum_i w i = 1.
  rewrite -D_1 (bigD1 (Some v)) // [RHS](bigD1 (Some v)) //= [in LHS](bigD1 None) //= [in RHS](bigD1 None) //=.
  rewrite /w !eqxx add0r addrA; congr (_ + _); apply: eq_bigr => i /andP[/negbTE -> /negbTE ->] //.
pose P r i := if (i == Some v) || (i == None) then partly_law n k v r known (q :: ps) Ds
              else partly_law n k v r (i :: known) ps Ds.
have next r0 : partly_law n k v r0 known ps (D :: Ds) =1 (fun y => \sum_i w i * P r0 i y).
  move=> y; rewrite (@partly_next n k v r0 known ps D Ds q y eq_q); apply: eq_bigr => i _.
  by rewrite /w /P; case: (i == Some v); case: (i == None).
rewrite (eq_hockey c (next r) (next r')).
apply: (le_trans (hockey_convex c (P r) (P r') w_ge0)); rewrite -[leRHS]mul1r -w_1 mulr_suml.
apply: ler_sum => i _; apply: ler_wpmul2l => //.
rewrite /P; case: ifP => [_|/norP[i_v i_N]]; apply: IH => //=; rewrite ?q_0p ?in_0p //.
  by rewrite inE negb_or eq_sym i_v.
by apply: leq_trans le_n; rewrite leq_add2r.
Qed.

(* Theorem B, presence: for at most n people, each of whom, told that the record is v or absent, is in v with a chance
   of at most p, the waiting times dominate the table with the target in v and absent, in both orders. *)
Theorem theorem_B_presence c p n k v Ds : (0 < k)%N -> 0 <= p <= 1 -> (size Ds <= n)%N ->
  (forall i, (i < size Ds)%N -> told_at_most v p (nth (fun _ => 0) Ds i)) ->
  hockey c (histogram n k (Some v) Ds) (histogram n k None Ds) <= hockey c (@waiting R n p k.-1) (waiting p k) /\
  hockey c (histogram n k None Ds) (histogram n k (Some v) Ds) <= hockey c (@waiting R n p k) (waiting p k.-1).
Proof.
move=> k_gt0 p_01 le_n told; have p_ge0 : 0 <= p by case/andP: p_01.
have start r y : histogram n k r Ds y = partly_law n k v r [::] [::] Ds y.
  apply: eq_record_mean => records; congr (_ == _)%:R; apply/ffunP => u; rewrite !ffunE.
  by rewrite muln0 addn0.
have fixed known : kernel (fun (o : option 'I_n.+2) y =>
    ([ffun u => if u == v then o else partly n k v None known 0 [::] u] == y)%:R : R).
  move=> o; split=> [y|]; first exact: ler0n.
  rewrite (bigD1 [ffun u => if u == v then o else partly n k v None known 0 [::] u]) //= eqxx big1 ?addr0 //.
  by move=> y /negbTE; rewrite eq_sym => ->.
rewrite !(eq_hockey c (start _) (start _)).
split; apply: (partly_le p_ge0) => // known ps v_new in_0p le_ps.
  have [A _] := theorem_A c k_gt0 p_01 in_0p le_ps; apply: le_trans A.
  by apply: (image_le c (fixed known)) => y; have [] := @partly_end n k v known ps y v_new.
have [_ A] := theorem_A c k_gt0 p_01 in_0p le_ps; apply: le_trans A.
by apply: (image_le c (fixed known)) => y; have [] := @partly_end n k v known ps y v_new.
Qed.

End Histogram.
