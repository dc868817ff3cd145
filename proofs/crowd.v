(* Theorem F of docs/mathematics.md, section 5, and several options there, for n people: where enough others may be in
   the target's cell, exact counts hide the target as a count of coins does, how many coins being random. *)

From mathcomp Require Import all_ssreflect all_algebra.
From pkdp Require Import hockey_stick vertex waiting_time histogram noise.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Crowd.

Variables (R : realFieldType) (V : finType) (n : nat) (c p s : R) (a b : option V).
Hypotheses (s_01 : 0 <= s <= 1) (a_b : a != b).
Implicit Types (D : option V -> R) (Ds : seq (option V -> R)) (slots : seq (option V + R)).

(* A law under which, with weight s, the record is a or b as a coin with chance p says. *)
Definition law_of_record D := (forall r, 0 <= D r) /\ \sum_r D r = 1.
Definition coin_within D := s * p <= D a /\ s * (1 - p) <= D b.

Let slot (i : option (option V)) : option V + R := if i is Some r then inl r else inr p.

(* With weight s that coin is revealed, else the record. *)
Lemma law_with_coin (with_coin : bool) D : law_of_record D -> (with_coin -> coin_within D) ->
  exists w : option (option V) -> R, [/\ forall i, 0 <= w i, w None = (if with_coin then s else 0), \sum_i w i = 1 &
    forall r, D r = \sum_i w i * slot_law a b (slot i) r].
Proof.
case=> D_ge0 D_1 within; pose s' := if with_coin then s else 0; pose coin := slot_law a b (inr p : option V + R).
have b_a : b != a by rewrite eq_sym.
have coin_1 : \sum_r coin r = 1.
  rewrite (bigD1 a) //= (bigD1 b) //= /coin /= !eqxx (negbTE b_a) big1 ?addr0 1?addrC ?subrK //.
  by move=> r /andP[/negbTE -> /negbTE ->].
have rest_ge0 r : 0 <= D r - s' * coin r.
  rewrite subr_ge0 /coin /= /s'; case: (with_coin) within => [[//|le_a le_b]|_]; last by rewrite mul0r.
  have [->|r_a] := eqVneq r a; first by [].
  by have [->|r_b] := eqVneq r b; rewrite ?mulr0.
exists (fun i => if i is Some r then D r - s' * coin r else s'); split=> // [[r|]||r].
- exact: rest_ge0.
- by rewrite /s'; case: (with_coin) => //; case/andP: s_01.
- by rewrite sum_option sumrB -mulr_sumr D_1 coin_1 mulr1 addrC subrK.
rewrite sum_option /= (bigD1 r) //= eqxx mulr1 big1 ?addr0 => [|r']; last by move/negbTE => ->; rewrite mulr0.
by rewrite addrC subrK.
Qed.

(* The divergence of an exact count of N coins, the target being counted or not, in either order. *)
Definition exact_count (target : bool) N : R :=
  hockey c (seen (fun x => @release R n 0 (target + x)%N) (nseq N p))
           (seen (fun x => release R 0 (~~ target + x)%N) (nseq N p)).

Definition record_of (target : bool) := if target then a else b.

(* Once all is revealed, the exact table is a function of an exact count of the coins. *)
Lemma revealed_table (target : bool) slots : all (fun i => if i is inr q then q == p else true) slots ->
  (size slots <= n)%N ->
  hockey c (histogram (n := n) 0 (record_of target) (map (slot_law a b) slots))
           (histogram 0 (record_of (~~ target)) (map (slot_law a b) slots))
  <= exact_count target (size (chances slots)).
Proof.
move=> all_p le_n; have eq_chances : chances slots = nseq (size (chances slots)) p.
  elim: slots all_p {le_n} => [//|[r|q] slots IH] /=; first exact: IH.
  by case/andP=> /eqP -> /IH {1}->.
set N := size (chances slots).
pose known u := count (pred1 (inl (Some u))) slots.
pose f (o : option 'I_n.+2) : {ffun V -> option 'I_n.+2} := let x := if o is Some x then x : nat else 0%N in
  [ffun u => thresholded n 0 (known u + (Some u == a) * x + (Some u == b) * (N.+1 - x))].
have law e : histogram (n := n) 0 (record_of e) (map (slot_law a b) slots)
    =1 push (fun o y => (f o == y)%:R) (seen (fun x => @release R n 0 (e + x)%N) (nseq N p)).
  move=> y; pose shown x := thresholded n 0 (e + x)%N.
  rewrite -[RHS]/(push (fun o y => (f o == y)%:R) (seen (fun x o => (shown x == o)%:R) (nseq N p)) y) push_map.
  rewrite /histogram /record_law record_mean_slots // -eq_chances.
  apply: mean_sized => tosses size_t; congr (_ == _)%:R; apply/ffunP => u; rewrite !ffunE /=.
  have le_s : (successes tosses <= N)%N by rewrite -[N]size_t count_size.
  have le_N : (N <= n)%N by rewrite (leq_trans (size_chances _)).
  rewrite count_filled // inordK; last by rewrite ltnS (leq_add (leq_b1 e)) // (leq_trans le_s).
  congr (thresholded n 0 _); rewrite /known size_t -/N.
  have [u_a|u_a] := eqVneq (Some u) a.
    have u_b := a_b; rewrite -u_a in u_b; rewrite (negbTE u_b) !mul1n !mul0n !addn0 addnCA; congr (_ + (_ + _))%N.
    by case: (e); rewrite /record_of -?u_a ?eqxx // eq_sym (negbTE u_b).
  rewrite !mul0n !addn0; have [u_b|u_b] := eqVneq (Some u) b.
    rewrite !mul1n addnCA; congr (_ + _)%N; case: (e); rewrite /record_of -?u_b ?eqxx.
      by rewrite eq_sym (negbTE u_a) add1n subSS.
    by rewrite add0n add1n subSn.
  by rewrite !mul0n !addn0; case: (e); rewrite /record_of eq_sym ?(negbTE u_a) ?(negbTE u_b).
exact: (image_le c (kernel_map R f) (law target) (law (~~ target))).
Qed.

(* Reveal one person after another, of the first m whether the record is such a coin. *)
Lemma crowd_le (target : bool) m before Ds : all (fun i => if i is inr q then q == p else true) before ->
  (size before + size Ds <= n)%N -> (m <= size Ds)%N ->
  (forall i, (i < size Ds)%N -> law_of_record (nth (fun _ => 0) Ds i)) ->
  (forall i, (i < m)%N -> coin_within (nth (fun _ => 0) Ds i)) ->
  hockey c (histogram (n := n) 0 (record_of target) (map (slot_law a b) before ++ Ds))
           (histogram 0 (record_of (~~ target)) (map (slot_law a b) before ++ Ds))
  <= mean_count (nseq m s) (fun N => exact_count target (N + size (chances before))).
Proof.
elim: Ds m before => [|D Ds IH] m before all_p le_n le_m laws coins.
  move: le_m; rewrite leqn0 => /eqP ->; rewrite cats0; apply: revealed_table => //.
  by rewrite addn0 in le_n.
have [|w [w_ge0 w_none w_1 eq_D]] := @law_with_coin (0 < m)%N D (laws 0%N isT); first exact: (coins 0%N).
have mixture r : histogram (n := n) 0 r (map (slot_law a b) before ++ D :: Ds)
    =1 fun y => \sum_i w i * histogram 0 r (map (slot_law a b) (rcons before (slot i)) ++ Ds) y.
  move=> y; rewrite /histogram /record_law (record_mean_affine _ _ _ eq_D); apply: eq_bigr => i _.
  by rewrite map_rcons cat_rcons.
rewrite (eq_hockey c (mixture _) (mixture _)); apply: (le_trans (hockey_convex c _ _ w_ge0)).
have le_slot i : hockey c (histogram (n := n) 0 (record_of target) (map (slot_law a b) (rcons before (slot i)) ++ Ds))
    (histogram 0 (record_of (~~ target)) (map (slot_law a b) (rcons before (slot i)) ++ Ds))
    <= mean_count (nseq m.-1 s) (fun N => exact_count target (N + (size (chances before) + (i == None))%N)).
  have -> : (size (chances before) + (i == None))%N = size (chances (rcons before (slot i))).
    rewrite -cats1 /chances -/(chances _) !size_pmap count_cat /=; by case: i => [r|] /=; rewrite addn0.
  apply: IH.
  - by rewrite all_rcons all_p andbT; case: i => //=.
  - by rewrite size_rcons addSnnS.
  - by case: m le_m {coins w_none}.
  - by move=> j lt_j; apply: (laws j.+1).
  by move=> j lt_j; apply: (coins j.+1); case: m lt_j {le_m coins w_none}.
apply: (@le_trans _ _ (\sum_i w i * mean_count (nseq m.-1 s)
    (fun N => exact_count target (N + (size (chances before) + (i == None)))%N))).
  by apply: ler_sum => i _; apply: ler_wpmul2l.
rewrite sum_option w_none /= addn1; under [X in _ + X]eq_bigr do rewrite addn0.
rewrite -mulr_suml; have -> : \sum_r w (Some r) = 1 - (if (0 < m)%N then s else 0).
  by move: w_1; rewrite sum_option w_none => <-; rewrite addrAC subrr add0r.
case: m {le_m coins w_none le_slot} => [|m] /=; first by rewrite mul0r add0r subr0 mul1r.
have -> : mean_count (nseq m s) (fun N => exact_count target (N + (size (chances before)).+1))
    = mean_count (nseq m s) ((fun N => exact_count target (N + size (chances before))) \o succn).
  by apply: eq_mean => tosses /=; rewrite addnS.
by rewrite mean_count_cons.
Qed.

End Crowd.

Section Theorems.

Variables (R : realFieldType) (V : finType).
Implicit Types (c p l : R) (v w : V) (Ds : seq (option V -> R)).

(* Theorem F: among at most n people at least m, of whom each is in v with a chance of at least l and, told that the
   record is v or absent, in v with one of at most p. Of the others nothing is assumed. Then the exact table, with the
   target in v or absent, in either order, has at most the mean divergence of an exact count of N coins with chance p,
   where N counts m coins with chance l/p. *)
Theorem theorem_F c p l n m v Ds (target : bool) : 0 < p <= 1 -> 0 <= l <= p -> (m <= size Ds <= n)%N ->
  (forall i, (i < size Ds)%N -> law_of_record (nth (fun _ => 0) Ds i)) ->
  (forall i, (i < m)%N -> l <= nth (fun _ => 0) Ds i (Some v) /\ told_at_most v p (nth (fun _ => 0) Ds i)) ->
  hockey c (histogram (n := n) 0 (if target then Some v else None) Ds)
           (histogram 0 (if ~~ target then Some v else None) Ds)
  <= mean_count (nseq m (l / p)) (exact_count n c p target).
Proof.
case/andP=> p_gt0 p_le1 /andP[l_ge0 l_le] /andP[le_m le_n] laws assumed.
have s_01 : 0 <= l / p <= 1 by rewrite divr_ge0 ?(ltW p_gt0) //= ler_pdivr_mulr // mul1r.
have := @crowd_le R V n c p (l / p) (Some v) None s_01 isT target m [::] Ds isT le_n le_m laws.
rewrite /=; have -> : mean_count (nseq m (l / p)) (fun N => exact_count n c p target (N + 0))
    = mean_count (nseq m (l / p)) (exact_count n c p target) by apply: eq_mean => tosses /=; rewrite addn0.
apply=> i /assumed[le_v [D_ge0 D_1 D_v]]; rewrite /coin_within divfK ?gt_eqF //; split=> //.
rewrite mulrAC ler_pdivr_mulr //; set x := nth _ _ _ (Some v) in le_v D_v; set y := nth _ _ _ None in D_v *.
have : x * (1 - p) <= p * y by rewrite mulrBr mulr1 ler_subl_addl [x * p]mulrC -mulrDr.
by rewrite [p * y]mulrC; apply: le_trans; rewrite ler_wpmul2r ?subr_ge0.
Qed.

(* Several options: among at most n people at least m, of whom each is in v, and in w, with a chance of at least l. Then
   the exact table, with the target in v or in w, has at most the mean divergence of an exact count of N fair coins,
   where N counts m coins with chance 2 l. *)
Theorem several_options c l n m v w Ds : v != w -> 0 <= l <= 2%:R^-1 -> (m <= size Ds <= n)%N ->
  (forall i, (i < size Ds)%N -> law_of_record (nth (fun _ => 0) Ds i)) ->
  (forall i, (i < m)%N -> l <= nth (fun _ => 0) Ds i (Some v) /\ l <= nth (fun _ => 0) Ds i (Some w)) ->
  hockey c (histogram (n := n) 0 (Some v) Ds) (histogram 0 (Some w) Ds)
  <= mean_count (nseq m (2%:R * l)) (exact_count n c 2%:R^-1 true).
Proof.
move=> v_w /andP[l_ge0 l_le] /andP[le_m le_n] laws assumed.
have two_gt0 : 0 < 2%:R :> R by rewrite ltr0n.
have s_01 : 0 <= 2%:R * l <= 1 by rewrite mulr_ge0 ?(ltW two_gt0) //= mulrC -ler_pdivl_mulr // mul1r.
have := @crowd_le R V n c 2%:R^-1 (2%:R * l) (Some v) (Some w) s_01 v_w true m [::] Ds isT le_n le_m laws.
rewrite /=; have -> : mean_count (nseq m (2%:R * l)) (fun N => exact_count n c 2%:R^-1 true (N + 0))
    = mean_count (nseq m (2%:R * l)) (exact_count n c 2%:R^-1 true) by apply: eq_mean => tosses /=; rewrite addn0.
have half : 1 - 2%:R^-1 = 2%:R^-1 :> R.
  by rewrite {1}[1]splitr mul1r addrK.
by apply=> i /assumed[le_v le_w]; rewrite /coin_within half mulrAC mulfV ?gt_eqF // mul1r.
Qed.

End Theorems.
