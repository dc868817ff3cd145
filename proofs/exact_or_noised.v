(* Theorem I of docs/mathematics.md, exact from k on and noised below, for n people: from the noise's epsilon on, the
   noised values say nothing of a present target; nor more of an absent one than suppression does, where e^epsilon
   (1 - p) is at most 1. The noise is any as in noise.v. *)

From Coq Require Import Ring.
From mathcomp Require Import all_ssreflect all_algebra.
From pkdp Require Import hockey_stick vertex waiting_time histogram display between noise value.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

(* Equations that the next proofs need, in any commutative ring. *)
Section Equations.
Variables (T : Type) (zero one : T) (add mul sub : T -> T -> T) (opp : T -> T).
Hypothesis T_ring : ring_theory zero one add mul sub opp (@eq T).
Add Ring T_ring_instance : T_ring.
Local Notation "x + y" := (add x y). Local Notation "x * y" := (mul x y). Local Notation "x - y" := (sub x y).
Local Notation "1" := one.
Lemma equation_gain p q c A d : p + q = 1 ->
  p * (A + d) + (c - 1) * (p * A + d * (p - c * q)) = c * (p * A) + d * (c * (1 - c * q)).
Proof.
move=> pq; have -> : p = 1 - q by transitivity (p + q - q); [ring | rewrite pq].
by ring.
Qed.
Lemma equation_pair P A e i : P * (A + i) * (P * (A + e)) = P * A * (P * (A + (i + e))) + e * i * (P * P).
Proof. by ring. Qed.
Lemma equation_product p c A B J g Q :
  p * A * (p * B * g + (c - 1) * (J * Q * g)) = (p * B + (c - 1) * (J * Q)) * (p * A * g).
Proof. by ring. Qed.
Lemma equation_ratio p q J K K1 f0 f1 f2 : J * q * f1 = K1 * p * f0 -> (J + 1) * q * f2 = K * p * f1 -> K1 = K + 1 ->
  (J + 1) * q * (p * f1 + q * f2) = K1 * p * (p * f0 + q * f1).
Proof.
move=> eq0 eq1 eqK; transitivity ((J + 1) * q * p * f1 + q * ((J + 1) * q * f2)); first by ring.
rewrite eq1; transitivity (p * (K1 * p * f0) + K1 * p * q * f1); last by ring.
by rewrite -eq0 eqK; ring.
Qed.
Lemma equation_first p q K f0 f1 : q * f1 = K * p * f0 -> q * (p * f0 + q * f1) = (K + 1) * p * (q * f0).
Proof. by move=> eq0; transitivity (q * p * f0 + q * (q * f1)); [ring | rewrite eq0; ring]. Qed.
Lemma equation_climb c p q u g0 g1 gd P : p + q = 1 ->
  c * u * (p * g1 + q * g0) - (c - 1) * (P + q * (u * gd)) - (u * g0 - (c - 1) * P)
  = u * (p * (c * g1) - ((c - 1) * q * gd + (1 - c * q) * g0)).
Proof. by move=> _; ring. Qed.
Lemma equation_enough c u g0 gd P :
  c * u * g0 - (c - 1) * (P + u * gd) - (u * g0 - (c - 1) * P) = (c - 1) * (u * (g0 - gd)).
Proof. by ring. Qed.
Lemma equation_gains c a b P : c * a - (c - 1) * P + (b - c * a) = c * b - (c - 1) * (P + b).
Proof. by ring. Qed.
Lemma equation_stay c p q u v g0 g1 ge P : p + q = 1 -> v * c = 1 ->
  u * (p * g1 + q * g0) - (c - 1) * (P - p * (v * u * ge)) - (u * g0 - (c - 1) * P)
  = v * u * p * (c * g1 + (c - 1) * ge - c * g0).
Proof.
move=> pq vc; have -> : q = 1 - p by transitivity (p + q - p); [ring | rewrite pq].
transitivity (u * p * g1 - u * p * g0 + (c - 1) * p * v * u * ge); first by ring.
transitivity ((v * c) * (u * p * g1 - u * p * g0) + (c - 1) * p * v * u * ge); last by ring.
by rewrite vc; ring.
Qed.
End Equations.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Marked.

Variables (R : realFieldType) (O : finType) (n k : nat) (c0 p : R) (noisy : nat -> O -> R).
Hypotheses (k_gt0 : (0 < k)%N) (p_01 : 0 <= p <= 1) (c0_ge1 : 1 <= c0).
Hypotheses (noisy_ge0 : forall x o, 0 <= noisy x o) (noisy_1 : forall x, \sum_o noisy x o = 1).
Hypothesis near : forall x o, noisy x.+1 o <= c0 * noisy x o /\ noisy x o <= c0 * noisy x.+1 o.
Implicit Types (c : R) (ps : seq R).

(* What is shown of a count: from k on the count itself, marked as exact; below k its noised value, marked as noised. *)
Definition marked (x : nat) (y : 'I_n.+2 + O) : R :=
  match y with inl i => if (k <= x)%N then (inord x == i)%:R else 0 | inr o => if (k <= x)%N then 0 else noisy x o end.

Lemma marked_ge0 x y : 0 <= marked x y.
Proof. by case: y => o /=; case: ifP => _; rewrite ?ler0n. Qed.

Lemma marked_1 x : \sum_y marked x y = 1.
Proof.
rewrite big_sumType /marked /=; case: (k <= x)%N; last by rewrite big1 // add0r noisy_1.
rewrite [X in _ + X]big1 // addr0 (bigD1 (inord x)) //= eqxx big1 ?addr0 // => i.
by rewrite eq_sym => /negbTE ->.
Qed.

(* Exact values are those of the suppressed count. *)
Lemma marked_exact (target : bool) ps i :
  seen (fun x => marked (target + x)%N) ps (inl i) = seen (fun x => @release R n k (target + x)%N) ps (Some i).
Proof. by apply: eq_mean => tosses /=; rewrite /release /thresholded; case: ifP. Qed.

(* From c0 on, no noised value is more than c times as likely with the target as without. *)
Lemma noised_le c ps o : c0 <= c -> all (fun q => 0 <= q <= p) ps ->
  seen (marked \o succn) ps (inr o) <= c * seen marked ps (inr o).
Proof.
move=> le_c in_0p; have in_01 : all (fun q => 0 <= q <= 1) ps.
  by apply: sub_all in_0p => q /andP[-> q_le]; case/andP: p_01 => _; apply: le_trans.
rewrite mulrC -mean_mulr; apply: mean_le => // tosses /=; move: (successes tosses) => x.
have c_ge0 : 0 <= c by apply: le_trans le_c; apply: le_trans c0_ge1.
case: leqP => [_|lt_x]; first by rewrite mulr_ge0 //; case: ifP.
rewrite leqNgt (ltn_trans (ltnSn x) lt_x) /= mulrC; have [le_near _] := near x o.
by apply: (le_trans le_near); rewrite ler_wpmul2r.
Qed.

(* Theorem I, present against absent: from c0 on the whole table has at most the divergence of theorem A, as if what is
   below k were suppressed. *)
Theorem theorem_I_right (V : finType) c v (Ds : seq (option V -> R)) : c0 <= c -> (size Ds <= n)%N ->
  (forall i, (i < size Ds)%N -> told_at_most v p (nth (fun _ => 0) Ds i)) ->
  hockey c (displayed marked (Some v) Ds) (displayed marked None Ds) <= hockey c (@waiting R n p k.-1) (waiting p k).
Proof.
move=> le_c le_n told; have p_ge0 : 0 <= p by case/andP: p_01.
apply: (@cell_as_count R V _ marked marked_ge0 marked_1 c p n v true) => // ps in_0p le_ps.
have [A _] := theorem_A c k_gt0 p_01 in_0p le_ps; apply: le_trans A.
rewrite /hockey big_sumType /= [X in _ + X]big1 ?addr0 => [|o _]; last first.
  by rewrite max_l // subr_le0; apply: noised_le.
rewrite sum_option -[leLHS]add0r; apply: ler_add; first by rewrite le_maxr lexx.
by apply: ler_sum => i _; have := marked_exact true ps i; have := marked_exact false ps i => -> ->.
Qed.

(* Nor is it less, in either order: some number of people reaches theorem A's pair. *)
Theorem theorem_I_least c : 0 < c ->
  (exists2 m, (m <= n)%N & hockey c (@waiting R n p k.-1) (waiting p k)
                           <= hockey c (seen (marked \o succn) (nseq m p)) (seen marked (nseq m p))) /\
  (exists2 m, (m <= n)%N & hockey c (@waiting R n p k) (waiting p k.-1)
                           <= hockey c (seen marked (nseq m p)) (seen (marked \o succn) (nseq m p))).
Proof.
move=> c_gt0; pose f (y : 'I_n.+2 + O) : option 'I_n.+2 := if y is inl i then Some i else None.
have suppressed (target : bool) m : seen (fun x => @release R n k (target + x)%N) (nseq m p)
    =1 push (fun y o => (f y == o)%:R) (seen (fun x => marked (target + x)%N) (nseq m p)).
  move=> o; rewrite /push /seen /mean_count; under eq_bigr do rewrite -mean_mulr.
  rewrite -mean_sum; apply: eq_mean => tosses /=; move: (target + _)%N => x.
  rewrite big_sumType /release /thresholded /=; case: (k <= x)%N => /=.
    rewrite [X in _ + X]big1 ?addr0 => [|y _]; last by rewrite mul0r.
    by rewrite (bigD1 (inord x)) //= eqxx mul1r big1 ?addr0 // => i; rewrite eq_sym => /negbTE ->; rewrite mul0r.
  by rewrite big1 ?add0r => [|i _]; rewrite ?mul0r // -mulr_suml noisy_1 mul1r.
have [[m le_m <-] [m' le_m' <-]] := theorem_A_reached n c_gt0 k_gt0 p_01.
split; [exists m | exists m'] => //.
  exact: (image_le c (kernel_map R f) (suppressed true m) (suppressed false m)).
exact: (image_le c (kernel_map R f) (suppressed false m') (suppressed true m')).
Qed.

End Marked.

(* Sequences whose ratios are those of the chances of j + d, j + d - 1, ... successes, each scaled by a power of c. *)
Section Ratios.

Variables (R : realFieldType) (p q c : R) (A j d : nat) (g : nat -> R).
Hypotheses (A_gt0 : (0 < A)%N) (d_gt0 : (0 < d)%N) (p_gt0 : 0 < p) (q_ge0 : 0 <= q) (pq_1 : p + q = 1).
Hypotheses (c_ge1 : 1 <= c) (cq_le1 : c * q <= 1) (g_ge0 : forall i, 0 <= g i).
Hypothesis ratio : forall i, (i <= d)%N -> (j + d - i)%:R * (c * q) * g i = p * (A + i)%:R * g i.+1.

Let Q := c * q.
Let c_ge0 : 0 <= c. Proof. exact: le_trans c_ge1. Qed.
Let Q_ge0 : 0 <= Q. Proof. exact: mulr_ge0. Qed.
Let pA_gt0 i : 0 < p * (A + i)%:R. Proof. by rewrite mulr_gt0 // ltr0n addn_gt0 A_gt0. Qed.

(* Where ratios at equal distance from the middle multiply to at most 1, the end is not above the start. *)
Lemma level : (forall i e, (i + e = d)%N -> (j + e)%:R * Q * ((j + i)%:R * Q) <= p * (A + i)%:R * (p * (A + e)%:R)) ->
  g d <= g 1.
Proof.
move=> pairs; suff step n : (forall a b, (b = a + n)%N -> (a + b = d.+1)%N -> g b <= g a) /\
    (forall a b, (b = a + n.+1)%N -> (a + b = d.+1)%N -> g b <= g a).
  have [le_d _] := step d.-1; apply: le_d; first by rewrite add1n prednK.
  by rewrite add1n.
elim: n => [|n [IH IH']].
  split=> a b ->; first by rewrite addn0.
  rewrite addn1 addnS => -[sum_d]; have le_a : (a <= d)%N by rewrite -sum_d leq_addr.
  have := pairs a a sum_d; rewrite -!expr2 ler_sqr ?nnegrE ?mulr_ge0 ?ler0n ?(ltW p_gt0) // => le_pair.
  have := ratio le_a; rewrite -sum_d addnA addnK => eq_g.
  by rewrite -(ler_pmul2l (pA_gt0 a)) -eq_g ler_wpmul2r.
split=> // a b eq_b sum_d.
have eq_e : b = (a.+1 + n).+1 by rewrite eq_b addSn !addnS.
have sum_ae : (a + (a.+1 + n) = d)%N by move: sum_d; rewrite eq_e addnS => -[].
have le_mid : g (a.+1 + n)%N <= g a.+1 by apply: IH => //; rewrite addSn sum_ae.
have le_a : (a <= d)%N by rewrite -sum_ae leq_addr.
have le_e : (a.+1 + n <= d)%N by rewrite -[X in (_ <= X)%N]sum_ae leq_addl.
have := ratio le_e; have := ratio le_a; set e := (a.+1 + n)%N in eq_e sum_ae le_mid le_e *.
rewrite -{1}sum_ae addnA addnAC addnK -sum_ae addnA addnK eq_e => eq_a eq_e'.
rewrite -(ler_pmul2l (pA_gt0 e)) -eq_e' -(ler_pmul2l (pA_gt0 a)).
apply: (@le_trans _ _ (p * (A + a)%:R * ((j + a)%:R * (c * q) * g a.+1))).
  apply: ler_wpmul2l; first exact: ltW.
  by apply: ler_wpmul2l => //; rewrite mulr_ge0 ?ler0n.
rewrite mulrCA -eq_a [leLHS]mulrA [leRHS]mulrA; apply: ler_wpmul2r => //.
by have := pairs a e sum_ae; rewrite /Q mulrC.
Qed.

(* One of two gains is not negative. *)
Lemma one_gains : g 0 <= g 1 ->
  (c - 1) * q * g d + (1 - Q) * g 0 <= p * g 1 \/ c * g 0 <= g 1 + (c - 1) * g d.+1.
Proof.
move=> le_g; have c1_ge0 : 0 <= c - 1 by rewrite subr_ge0.
have p_sum : p = (c - 1) * q + (1 - Q) by rewrite mulrBl mul1r -/Q addrC addrA subrK -pq_1 addrK.
have gain1 : g d <= g 1 -> (c - 1) * q * g d + (1 - Q) * g 0 <= p * g 1.
  move=> le_d; have -> : p * g 1 = (c - 1) * q * g 1 + (1 - Q) * g 1.
    by rewrite -mulrDl -p_sum.
  by apply: ler_add; apply: ler_wpmul2l; rewrite ?mulr_ge0 ?subr_ge0.
have [/gain1|lt_d] := lerP (g d) (g 1); [by left | have le_d := ltW lt_d].
have eq_0 := ratio (leq0n d); have eq_d := ratio (leqnn d).
rewrite subn0 addn0 in eq_0; rewrite addnK in eq_d.
have pA0 : 0 < p * A%:R by have := pA_gt0 0; rewrite addn0.
have [le_B|lt_B] := lerP (p * (A + d)%:R) ((j + d)%:R * Q).
  right; rewrite -(ler_pmul2l (pA_gt0 d)) -(ler_pmul2l pA0) mulrDr [p * (A + d)%:R * ((c - 1) * _)]mulrCA -eq_d.
  apply: (@le_trans _ _ (p * A%:R * (p * (A + d)%:R * g 1 + (c - 1) * (j%:R * Q * g 1)))); last first.
    by apply: ler_wpmul2l; rewrite ?(ltW pA0) // ler_add2l !ler_wpmul2l // mulr_ge0 ?ler0n.
  rewrite (equation_product (ring_of R)) /= -eq_0 -/Q.
  have le_sum : c * (p * A%:R) <= p * (A + d)%:R + (c - 1) * (j%:R * Q).
    have le_jQ : p * A%:R + d%:R * (p - Q) <= j%:R * Q.
      have -> : p * A%:R + d%:R * (p - Q) = p * (A + d)%:R - d%:R * Q.
        by rewrite mulrBr addrA [d%:R * p]mulrC -mulrDr -natrD.
      by rewrite ler_subl_addr -mulrDl -natrD.
    apply: (@le_trans _ _ (p * (A + d)%:R + (c - 1) * (p * A%:R + d%:R * (p - Q)))); last first.
      by rewrite ler_add2l ler_wpmul2l.
    have := equation_gain (ring_of R) c A%:R d%:R pq_1; rewrite /= -natrD => ->.
    by rewrite ler_addl !mulr_ge0 ?ler0n // subr_ge0.
  apply: (@le_trans _ _ ((c * (p * A%:R)) * ((j + d)%:R * Q * g 0))); last first.
    by apply: ler_wpmul2r => //; rewrite !mulr_ge0 ?ler0n.
  rewrite [p * (A + d)%:R * (c * _)]mulrCA [leLHS]mulrCA -mulrA; apply: ler_wpmul2l => //.
  by apply: ler_wpmul2l; [apply: ltW | apply: ler_wpmul2r].
have [le_pQ|lt_Qp] := lerP p Q.
  left; apply: gain1; apply: level => i e eq_ie.
  have bound a b : (a + b = d)%N -> (j + a)%:R * Q <= p * (A + a)%:R.
    move=> eq_ab; have : (j + a)%:R * Q + b%:R * p <= p * (A + a)%:R + b%:R * p; last by rewrite ler_add2r.
    have -> : p * (A + a)%:R + b%:R * p = p * (A + d)%:R.
      by rewrite [b%:R * p]mulrC -mulrDr -natrD -addnA eq_ab.
    apply: le_trans (ltW lt_B); have -> : (j + d)%:R * Q = (j + a)%:R * Q + b%:R * Q.
      by rewrite -mulrDl -natrD -addnA eq_ab.
    by rewrite ler_add2l ler_wpmul2l ?ler0n.
  rewrite mulrC; apply: ler_pmul; rewrite ?mulr_ge0 ?ler0n //; first exact: bound eq_ie.
  by apply: (bound e i); rewrite addnC.
have square (x y : nat) : (x%:R * y%:R : R) = (x * y)%:R by rewrite natrM.
have [le_ends|lt_ends] := lerP ((j + d)%:R * Q * (j%:R * Q)) (p * A%:R * (p * (A + d)%:R)).
  left; apply: gain1; apply: level => i e eq_ie; have pair := equation_pair (ring_of R).
  rewrite ![(j + _)%:R * Q]mulrC !natrD pair [leRHS]pair /= -!natrD [(e + i)%N]addnC eq_ie.
  apply: ler_add; first by rewrite mulrC [Q * (_ + _)%:R]mulrC [Q * _]mulrC.
  rewrite [i%:R * _]mulrC; apply: ler_wpmul2l; first by rewrite mulr_ge0 ?ler0n.
  by apply: ler_pmul => //; apply: ltW.
right; have le_g0 : g 0 <= g d.+1.
  rewrite -(ler_pmul2l (pA_gt0 d)) -eq_d -(ler_pmul2l pA0).
  apply: (@le_trans _ _ (p * A%:R * (j%:R * Q * g 1))); last first.
    by apply: ler_wpmul2l; rewrite ?(ltW pA0) // ler_wpmul2l // mulr_ge0 ?ler0n.
  rewrite [leRHS]mulrCA -eq_0 -/Q mulrA [leRHS]mulrA; apply: ler_wpmul2r => //.
  by rewrite [leRHS]mulrC ltW.
have -> : c * g 0 = g 0 + (c - 1) * g 0 by rewrite mulrBl mul1r addrC subrK.
by apply: ler_add => //; apply: ler_wpmul2l.
Qed.

End Ratios.

Section Climb.

Variables (R : realFieldType) (c p : R) (r : nat).
Hypotheses (p_gt0 : 0 < p) (p_le1 : p <= 1) (c_ge1 : 1 <= c) (cq_le1 : c * (1 - p) <= 1) (r_gt0 : (0 < r)%N).

Let q := 1 - p.
Let q_ge0 : 0 <= q. Proof. by rewrite subr_ge0. Qed.
Let c_gt0 : 0 < c. Proof. exact: lt_le_trans c_ge1. Qed.
Let c_ge0 : 0 <= c. Proof. exact: ltW. Qed.
Let pq_1 : p + q = 1. Proof. by rewrite addrC subrK. Qed.

Let natr_S n : n.+1%:R = n%:R + 1 :> R. Proof. by rewrite -addn1 natrD. Qed.

(* The chance that of m coins j succeed, and that fewer do. *)
Definition binomial m j : R := chance (nseq m p) j.
Definition below m j : R := \sum_(i < j) binomial m i.

Lemma binomial_ge0 m j : 0 <= binomial m j.
Proof. by apply: chance_ge0; rewrite all_nseq (ltW p_gt0) p_le1 orbT. Qed.

Lemma binomial_0 m : binomial m.+1 0 = q * binomial m 0.
Proof. exact: chance_cons0. Qed.

Lemma binomial_S m j : binomial m.+1 j.+1 = p * binomial m j + q * binomial m j.+1.
Proof. exact: chance_cons. Qed.

Lemma binomial_few m j : (m < j)%N -> binomial m j = 0.
Proof.
elim: m j => [|m IH] [|j] // lt_j; last by rewrite binomial_S !IH ?mulr0 ?addr0 // ltnW.
Qed.

Lemma binomial_ratio m j : j.+1%:R * q * binomial m j.+1 = (m - j)%:R * p * binomial m j.
Proof.
elim: m j => [|m IH] j; first by rewrite binomial_few // mulr0 sub0n !mul0r.
have [lt_m|le_j] := ltnP m j.
  by rewrite binomial_few ?ltnS // mulr0 (eqP (_ : m.+1 - j == 0)%N) ?subn_eq0 // !mul0r.
rewrite binomial_S subSn //; case: j le_j => [|j] le_j.
  have := IH 0%N; rewrite binomial_0 subn0 !mul1r natr_S; exact: (equation_first (ring_of R)).
rewrite binomial_S [j.+2%:R]natr_S; apply: (equation_ratio (ring_of R)); last by rewrite natr_S.
  by rewrite -subSn // subSS; apply: IH.
by rewrite -natr_S; apply: IH.
Qed.

Lemma below_S m j : below m.+1 j.+1 = below m j + q * binomial m j.
Proof.
elim: j => [|j IH]; first by rewrite /below big_ord_recr !big_ord0 /= !add0r binomial_0.
rewrite /below big_ord_recr /= -/(below _ _) IH binomial_S [in RHS]big_ord_recr /= -/(below _ _).
by rewrite -!addrA; congr (_ + _); rewrite addrA -mulrDl [q + p]addrC pq_1 mul1r.
Qed.

(* What r successes tell where noise makes them look like j with a chance of c^-(r - j): P[S = r] c^-(r - j)
   - (c - 1) P[S < j]. For j = r it is what theorem A's left side tells of m people. *)
Definition told m j : R := c^-1 ^+ (r - j) * binomial m r - (c - 1) * below m j.

(* The chances of r, r - 1, ... successes, scaled. *)
Definition scaled m i : R := if (i <= r)%N then c ^+ i * binomial m (r - i) else 0.

Lemma scaled_ge0 m i : 0 <= scaled m i.
Proof. by rewrite /scaled; case: ifP => // _; rewrite mulr_ge0 ?exprn_ge0 ?binomial_ge0. Qed.

Lemma scaled_ratio m i : (r <= m)%N -> (i <= r)%N ->
  (r - i)%:R * (c * q) * scaled m i = p * (m.+1 - r + i)%:R * scaled m i.+1.
Proof.
move=> le_rm le_ir; rewrite /scaled le_ir; have [lt_ir|le_ri] := ltnP i r; last first.
  by rewrite (eqP (_ : r - i == 0)%N) ?subn_eq0 // !mul0r mulr0.
have eq_s : (r - i = (r - i.+1).+1)%N by rewrite subnSK.
have eq_A : (m.+1 - r + i = m - (r - i.+1))%N by rewrite subnBA // addnBAC ?leqW // addnS addSn.
have := binomial_ratio m (r - i.+1); rewrite -eq_s -eq_A => eq_f.
transitivity (c ^+ i.+1 * ((r - i)%:R * q * binomial m (r - i))); last by rewrite eq_f mulrCA [_ * p]mulrC.
by rewrite exprS [_%:R * (c * q)]mulrCA mulrACA.
Qed.

(* So far m coins are few, one more does not lower what is told by the better of two. *)
Lemma climb m j : (r <= m)%N -> (j < r)%N -> p * (m.+1 - r)%:R <= r%:R * (c * q) ->
  told m j <= told m.+1 j.+1 \/ told m j <= told m.+1 j.
Proof.
move=> le_rm lt_jr few; pose d := (r - j)%N; pose A := (m.+1 - r)%N.
have d_gt0 : (0 < d)%N by rewrite subn_gt0.
have A_gt0 : (0 < A)%N by rewrite subn_gt0 ltnS.
have jd : (j + d = r)%N by rewrite subnKC // ltnW.
pose g := scaled m; have g_ge0 i : 0 <= g i := scaled_ge0 m i.
have ratio i : (i <= d)%N -> (j + d - i)%:R * (c * q) * g i = p * (A + i)%:R * g i.+1.
  by move=> le_i; rewrite jd scaled_ratio // (leq_trans le_i) ?leq_subr.
have u_gt0 : 0 < c^-1 ^+ d by rewrite exprn_gt0 // invr_gt0.
have uc : c^-1 ^+ d * c ^+ d = 1 by rewrite -exprMn mulVf ?expr1n ?gt_eqF.
have g0 : g 0%N = binomial m r by rewrite /g /scaled leq0n expr0 mul1r subn0.
have g1 : g 1%N = c * binomial m r.-1 by rewrite /g /scaled r_gt0 expr1 subn1.
have fr : binomial m.+1 r = p * binomial m r.-1 + q * binomial m r by case: r r_gt0 => // r' _; apply: binomial_S.
have gd : binomial m j = c^-1 ^+ d * g d by rewrite /g /scaled leq_subr mulrA uc mul1r subKn // ltnW.
have le_g : g 0%N <= g 1%N.
  have := ratio 0%N (leq0n _); rewrite jd subn0 addn0 => eq_0.
  have pA : 0 < p * A%:R by rewrite mulr_gt0 // ltr0n.
  by rewrite -(ler_pmul2l pA) -eq_0 ler_wpmul2r.
have [gain|gain] := one_gains A_gt0 d_gt0 p_gt0 q_ge0 pq_1 c_ge1 cq_le1 g_ge0 ratio le_g; [left | right];
  rewrite -subr_ge0 /told.
  have -> : c^-1 ^+ (r - j.+1) = c * c^-1 ^+ d by rewrite /d -(subnSK lt_jr) exprS mulrA divff ?gt_eqF // mul1r.
  rewrite fr below_S gd (equation_climb (ring_of R)) // -/d /= -g1 -g0.
  by rewrite mulr_ge0 ?(ltW u_gt0) // subr_ge0.
have -> : below m.+1 j = below m j - p * (c^-1 * c^-1 ^+ d * g d.+1).
  have [j0|j_gt0] := posnP j.
    by rewrite /g /scaled /d j0 subn0 ltnn !mulr0 subr0 /below !big_ord0.
  have lt_d : (d < r)%N by rewrite /d ltn_subrL j_gt0.
  have eq_j : (r - d.+1 = j.-1)%N by rewrite subnS /d subKn // ltnW.
  rewrite /g /scaled lt_d [_ * (c ^+ _ * _)]mulrA -exprS -exprMn mulVf ?gt_eqF // expr1n mul1r eq_j.
  rewrite -{1 2}(prednK j_gt0).
  rewrite below_S [in RHS]/below big_ord_recr /= -/(below _ _) -addrA; congr (_ + _).
  by rewrite -{2}[binomial m j.-1]mul1r -mulrBl.
rewrite fr (equation_stay (ring_of R)) ?mulVf ?gt_eqF // -g1 -g0.
by rewrite !mulr_ge0 ?invr_ge0 ?(ltW u_gt0) ?(ltW p_gt0) // subr_ge0.
Qed.

(* Where m coins are enough, the last is told best. *)
Lemma enough m j : (r <= m)%N -> (j < r)%N -> r%:R * (c * q) <= p * (m.+1 - r)%:R -> told m j <= told m j.+1.
Proof.
move=> le_rm lt_jr many; pose d := (r - j)%N.
have falls i : (i <= r)%N -> scaled m i <= scaled m 0.
  elim: i => // i IH lt_i; apply: le_trans (IH (ltnW lt_i)).
  have pA : 0 < p * (m.+1 - r + i)%:R by rewrite mulr_gt0 // ltr0n addn_gt0 subn_gt0 ltnS le_rm.
  rewrite -(ler_pmul2l pA) -scaled_ratio ?(ltnW lt_i) //; apply: ler_wpmul2r; first exact: scaled_ge0.
  apply: (@le_trans _ _ (r%:R * (c * q))).
    by apply: ler_wpmul2r; rewrite ?mulr_ge0 // ler_nat leq_subr.
  by apply: (le_trans many); rewrite ler_pmul2l // ler_nat leq_addr.
have uc : c^-1 ^+ d * c ^+ d = 1 by rewrite -exprMn mulVf ?expr1n ?gt_eqF.
have fj : binomial m j = c^-1 ^+ d * scaled m d by rewrite /scaled leq_subr mulrA uc mul1r subKn // ltnW.
have f0 : binomial m r = scaled m 0 by rewrite /scaled leq0n expr0 mul1r subn0.
have -> : told m j.+1 = c * c^-1 ^+ d * scaled m 0 - (c - 1) * (below m j + c^-1 ^+ d * scaled m d).
  rewrite /told -fj -f0 /below big_ord_recr /=; congr (_ * _ - _).
  by rewrite /d -(subnSK lt_jr) exprS mulrA divff ?gt_eqF // mul1r.
rewrite /told f0 -/d -subr_ge0.
have -> : c * c^-1 ^+ d * scaled m 0 - (c - 1) * (below m j + c^-1 ^+ d * scaled m d)
    - (c^-1 ^+ d * scaled m 0 - (c - 1) * below m j) = (c - 1) * (c^-1 ^+ d * (scaled m 0 - scaled m d)).
  exact: (equation_enough (ring_of R)).
by rewrite !mulr_ge0 ?exprn_ge0 ?invr_ge0 ?subr_ge0 // falls // leq_subr.
Qed.

(* So where n coins are enough, the most that m of n coins tell is what they tell of theorem A's left side. *)
Lemma told_le n m j (B : R) : 0 <= B -> (r <= n)%N -> r%:R * (c * q) <= p * (n.+1 - r)%:R ->
  (forall m', (m' <= n)%N -> told m' r <= B) -> (m <= n)%N -> (j <= r)%N -> told m j <= B.
Proof.
move=> B_ge0 le_rn many last_le; elim: {m}(n - m)%N {-2}m (erefl (n - m)%N) j => [|gap IH] m eq_gap j le_mn le_jr.
  have {}eq_gap : m = n by apply/eqP; rewrite eqn_leq le_mn -subn_eq0 eq_gap.
  rewrite {}eq_gap {m le_mn}; elim: {j}(r - j)%N {-2}j (erefl (r - j)%N) le_jr => [|e IH] j eq_e le_jr.
    have -> : j = r by apply/eqP; rewrite eqn_leq le_jr -subn_eq0 eq_e.
    exact: last_le.
  have lt_jr : (j < r)%N by rewrite -subn_gt0 eq_e.
  by apply: (le_trans (enough le_rn lt_jr many)); apply: IH => //; rewrite subnS eq_e.
have lt_mn : (m < n)%N by rewrite -subn_gt0 eq_gap.
have eq_gap' : (n - m.+1 = gap)%N by rewrite subnS eq_gap.
have [lt_mr|le_rm] := ltnP m r.
  rewrite /told binomial_few // mulr0 sub0r; apply: le_trans B_ge0; rewrite oppr_le0 mulr_ge0 ?subr_ge0 //.
  by apply: sumr_ge0 => i _; apply: binomial_ge0.
have [m_many|m_few] := lerP (r%:R * (c * q)) (p * (m.+1 - r)%:R).
  elim: {j}(r - j)%N {-2}j (erefl (r - j)%N) le_jr => [|e IHe] j eq_e le_jr.
    have -> : j = r by apply/eqP; rewrite eqn_leq le_jr -subn_eq0 eq_e.
    exact: last_le.
  have lt_jr : (j < r)%N by rewrite -subn_gt0 eq_e.
  by apply: (le_trans (enough le_rm lt_jr m_many)); apply: IHe => //; rewrite subnS eq_e.
have [lt_jr|le_rj] := ltnP j r; last first.
  have -> : j = r by apply/eqP; rewrite eqn_leq le_jr.
  exact: last_le.
by have [le|le] := climb le_rm lt_jr (ltW m_few); apply: (le_trans le); apply: IH => //; apply: ltnW.
Qed.

End Climb.

Section Left.

Variables (R : realFieldType) (c p : R) (r n : nat).
Hypotheses (p_gt0 : 0 < p) (p_le1 : p <= 1) (c_ge1 : 1 <= c) (cq_le1 : c * (1 - p) <= 1) (r_gt0 : (0 < r)%N).

Let c_gt0 : 0 < c. Proof. exact: lt_le_trans c_ge1. Qed.
Let c_ge0 : 0 <= c. Proof. exact: ltW. Qed.
Let cV_ge0 : 0 <= c^-1. Proof. by rewrite invr_ge0. Qed.

Local Notation f m := (binomial p m).
Local Notation more m := (chance_more (nseq m p)).

(* How much likelier a count of j of m coins is without the target; from j on, when each counts c times less. *)
Definition gain m j : R := f m j - c * more m j.
Definition tail m j : R := c^-1 ^+ (r - j) * f m r - c * more m j.

Lemma gain_sum m j : \sum_(i < j) gain m i = c * more m j - (c - 1) * below p m j.
Proof.
elim: j => [|j IH]; first by rewrite /below !big_ord0 !mulr0 subr0.
rewrite big_ord_recr /= IH /below big_ord_recr /= -/(below _ _ _) /gain; exact: (equation_gains (ring_of R)).
Qed.

Lemma told_gain m j : told c p r m j = \sum_(i < j) gain m i + tail m j.
Proof. by rewrite gain_sum /told /tail [RHS]addrC addrA subrK. Qed.

Lemma tail_S m j : (j < r)%N -> tail m j = gain m j + c^-1 * tail m j.+1.
Proof.
move=> lt_jr; rewrite /tail /gain -(subnSK lt_jr) exprS /= mulrBr !mulrA mulVf ?gt_eqF // mul1r.
by rewrite [RHS]addrC addrA subrK.
Qed.

Lemma tail_last m : tail m r = gain m r.
Proof. by rewrite /tail /gain subnn mul1r. Qed.

(* Where counts that differ by one show an event with chances w that differ by a factor of at most c, it tells no more
   than some of these. *)
Lemma event_le m (w : nat -> R) t (B : R) : (forall j, 0 <= w j <= 1) ->
  (forall j, w j <= c * w j.+1 /\ w j.+1 <= c * w j) -> (t <= r)%N ->
  (forall i, (i < t)%N -> 0 <= gain m i) -> (forall i, (t <= i <= r)%N -> gain m i <= 0) -> 0 <= B ->
  (forall j, (j <= r)%N -> told c p r m j <= B) -> \sum_(i < r.+1) gain m i * w i <= B.
Proof.
move=> w_01 w_near le_tr gains losses B_ge0 told_B.
have w_ge0 j : 0 <= w j by case/andP: (w_01 j).
have w_le1 j : w j <= 1 by case/andP: (w_01 j).
have [t_0|t_gt0] := posnP t.
  apply: le_trans B_ge0; rewrite -oppr_ge0 -sumrN; apply: sumr_ge0 => i _; rewrite oppr_ge0.
  apply: mulr_le0_ge0 => //; apply: losses.
  by rewrite t_0 leq0n -ltnS ltn_ord.
have up j x : (j <= t.-1)%N -> 0 <= x <= 1 -> (forall i, (i < j)%N -> w i <= c ^+ (j - i) * x) ->
    \sum_(i < j) gain m i * w i + x * tail m j <= B.
  elim: j x => [|j IH] x le_j /andP[x_ge0 x_le1] w_le.
    rewrite big_ord0 add0r; have := told_B 0%N (leq0n _); rewrite told_gain big_ord0 add0r => le_B.
    have [tail_ge0|/ltW tail_le0] := lerP 0 (tail m 0).
      by apply: le_trans le_B; rewrite ler_pimull.
    by apply: le_trans B_ge0; rewrite mulr_ge0_le0.
  have lt_jt : (j < t)%N by rewrite (leq_trans le_j) ?leq_pred.
  have lt_jr : (j < r)%N by rewrite (leq_trans lt_jt).
  have gain_j := gains j lt_jt.
  have [cx_le1|cx_gt1] := lerP (c * x) 1.
    apply: (@le_trans _ _ (\sum_(i < j) gain m i * w i + c * x * tail m j)); last first.
      apply: IH; rewrite ?(ltnW le_j) ?cx_le1 ?mulr_ge0 // => i lt_i.
      by rewrite mulrA -exprSr -subSn ?(ltnW lt_i) //; apply: w_le; apply: leqW.
    rewrite big_ord_recr /= -addrA ler_add2l (tail_S _ lt_jr) [leRHS]mulrDr.
    have -> : c * x * (c^-1 * tail m j.+1) = x * tail m j.+1 by rewrite [c * x]mulrC mulrA mulfK ?gt_eqF.
    by rewrite ler_add2r mulrC ler_wpmul2r //; have := w_le j (ltnSn j); rewrite subSnn expr1.
  apply: (@le_trans _ _ (\sum_(i < j.+1) gain m i + x * tail m j.+1)).
    rewrite ler_add2r; apply: ler_sum => i _; apply: ler_pimulr => //; apply: gains.
    by rewrite (leq_trans (ltn_ord i)).
  have [tail_ge0|/ltW tail_le0] := lerP 0 (tail m j.+1).
    by apply: le_trans (told_B j.+1 lt_jr); rewrite told_gain ler_add2l ler_pimull.
  apply: le_trans (told_B j (ltnW lt_jr)); rewrite told_gain (tail_S _ lt_jr) big_ord_recr /= -addrA.
  rewrite !ler_add2l; apply: ler_wnmul2r => //; rewrite -[c^-1]mul1r ler_pdivr_mulr //.
  by rewrite mulrC ltW.
have tail_le0 j : (t <= j <= r)%N -> tail m j <= 0.
  case/andP=> le_tj le_jr; elim: {j}(r - j)%N {-2}j (erefl (r - j)%N) le_tj le_jr => [|e IH] j eq_e le_tj le_jr.
    have -> : j = r by apply/eqP; rewrite eqn_leq le_jr -subn_eq0 eq_e.
    by rewrite tail_last; apply: losses; rewrite le_tr leqnn.
  have lt_jr : (j < r)%N by rewrite -subn_gt0 eq_e.
  rewrite (tail_S _ lt_jr) -[leRHS]addr0; apply: ler_add.
    by apply: losses; rewrite le_tj.
  by rewrite mulr_ge0_le0 //; apply: IH; rewrite ?subnS ?eq_e // leqW.
have down j : (t.-1 <= j)%N -> (j <= r)%N ->
    \sum_(i < r.+1) gain m i * w i <= \sum_(i < j) gain m i * w i + w j * tail m j.
  elim: {j}(r - j)%N {-2}j (erefl (r - j)%N) => [|e IH] j eq_e le_tj le_jr.
    have -> : j = r by apply/eqP; rewrite eqn_leq le_jr -subn_eq0 eq_e.
    by rewrite big_ord_recr tail_last /= [w r * _]mulrC.
  have lt_jr : (j < r)%N by rewrite -subn_gt0 eq_e.
  have le_tj' : (t <= j.+1)%N by rewrite -(prednK t_gt0) ltnS.
  have := IH j.+1; rewrite subnS eq_e => /(_ erefl (leqW le_tj) lt_jr) le_sum; apply: (le_trans le_sum).
  rewrite big_ord_recr /= -addrA ler_add2l (tail_S _ lt_jr) [leRHS]mulrDr [w j * gain _ _]mulrC ler_add2l mulrA.
  apply: ler_wnmul2r; first by apply: tail_le0; rewrite le_tj' lt_jr.
  by rewrite ler_pdivr_mulr // mulrC; case: (w_near j).
apply: (le_trans (down t.-1 (leqnn _) (leq_trans (leq_pred _) le_tr))); apply: up => // i lt_i.
have : (i <= t.-1)%N by apply: ltnW.
elim: {i lt_i}(t.-1 - i)%N {-2}i (erefl (t.-1 - i)%N) => [|e IH] i eq_e le_i.
  have -> : i = t.-1 by apply/eqP; rewrite eqn_leq le_i -subn_eq0 eq_e.
  by rewrite subnn expr0 mul1r.
have lt_i : (i < t.-1)%N by rewrite -subn_gt0 eq_e.
have [le_w _] := w_near i; apply: (le_trans le_w); rewrite eq_e exprS -mulrA ler_wpmul2l //.
by have := IH i.+1; rewrite subnS eq_e => /(_ erefl lt_i).
Qed.

End Left.

Section Absent.

Variables (R : realFieldType) (O : finType) (n k : nat) (c0 c p : R) (noisy : nat -> O -> R).
Hypotheses (k_gt1 : (1 < k)%N) (p_gt0 : 0 < p) (p_le1 : p <= 1) (c0_ge1 : 1 <= c0) (c0_le : c0 <= c).
Hypotheses (noisy_ge0 : forall x o, 0 <= noisy x o) (noisy_1 : forall x, \sum_o noisy x o = 1).
Hypothesis near : forall x o, noisy x.+1 o <= c0 * noisy x o /\ noisy x o <= c0 * noisy x.+1 o.
Hypotheses (cq_le1 : c * (1 - p) <= 1) (le_kn : (k.-1 <= n)%N).
Hypothesis many : k.-1%:R * (c * (1 - p)) <= p * (n.+1 - k.-1)%:R.

Let c_ge1 : 1 <= c. Proof. exact: le_trans c0_le. Qed.
Let c_gt0 : 0 < c. Proof. exact: lt_le_trans c_ge1. Qed.
Let p_01 : 0 <= p <= 1. Proof. by rewrite (ltW p_gt0). Qed.
Let k_gt0 : (0 < k)%N. Proof. exact: ltnW. Qed.
Let r_gt0 : (0 < k.-1)%N. Proof. by rewrite -ltnS prednK. Qed.

Local Notation gain := (gain c p).

Lemma seen_gain (T : finType) (K : nat -> T -> R) m y : (m <= n)%N ->
  seen K (nseq m p) y - c * seen (K \o succn) (nseq m p) y = \sum_(x < n.+3) gain m x * K x y.
Proof.
move=> le_mn; have lt_m : (size (nseq m p) < n.+2)%N by rewrite size_nseq ltnS leqW.
rewrite /seen (mean_by_chance_more (K ^~ y) lt_m) (mean_by_chance _ (leqW lt_m)) mulr_sumr -sumrB.
by apply: eq_bigr => x _; rewrite /gain /binomial mulrBl mulrA.
Qed.

Lemma small_sum (g : nat -> R) m :
  \sum_(x < n.+3) gain m x * (if (k <= x)%N then 0 else g x) = \sum_(x < k) gain m x * g x.
Proof.
have le_k : (k <= n.+3)%N by rewrite -(prednK k_gt0) ltnS (leq_trans le_kn) // leqW.
rewrite (big_ord_widen n.+3 (fun x => gain m x * g x) le_k) [RHS]big_mkcond /=; apply: eq_bigr => x _.
by rewrite ltnNge; case: (k <= x)%N; rewrite ?mulr0.
Qed.

Let B := hockey c (@waiting R n p k) (waiting p k.-1).

Lemma release_le m : (m <= n)%N ->
  hockey c (seen (@release R n k) (nseq m p)) (seen (@release R n k \o succn) (nseq m p)) <= B.
Proof.
move=> le_mn; have in_0p : all (fun q => 0 <= q <= p) (nseq m p) by rewrite all_nseq lexx (ltW p_gt0) orbT.
have size_m : (size (nseq m p) <= n)%N by rewrite size_nseq.
by have [] := theorem_A c k_gt0 p_01 in_0p size_m.
Qed.

Lemma none_gain m : (m <= n)%N -> seen (@release R n k) (nseq m p) None
  - c * seen (@release R n k \o succn) (nseq m p) None = \sum_(x < k) gain m x.
Proof.
move=> le_mn; rewrite seen_gain //.
transitivity (\sum_(x < n.+3) gain m x * (if (k <= x)%N then 0 else 1)).
  by apply: eq_bigr => x _; rewrite /release /thresholded; case: ifP.
by rewrite (small_sum (fun _ => 1)); apply: eq_bigr => x _; rewrite mulr1.
Qed.

Lemma release_none m : (m <= n)%N -> \sum_(x < k) gain m x <= B.
Proof.
move=> le_mn; apply: le_trans (release_le le_mn); rewrite /hockey sum_option -none_gain // -[leLHS]addr0.
apply: ler_add; first by rewrite le_maxr lexx orbT.
by apply: sumr_ge0 => o _; rewrite le_maxr lexx.
Qed.

Let B_ge0 : 0 <= B. Proof. exact: hockey_ge0. Qed.

Lemma told_left m j : (m <= n)%N -> (j <= k.-1)%N -> told c p k.-1 m j <= B.
Proof.
move=> le_mn le_j; apply: (@told_le R c p k.-1 p_gt0 p_le1 c_ge1 cq_le1 r_gt0 n m j B) => // m' le_m'.
rewrite told_gain tail_last.
have -> : \sum_(i < k.-1) gain m' i + gain m' k.-1 = \sum_(x < k) gain m' x.
  by rewrite -[in RHS](prednK k_gt0) big_ord_recr.
exact: release_none.
Qed.

Lemma noisy_gain m o : (m <= n)%N -> seen (@marked R O n k noisy) (nseq m p) (inr o)
  - c * seen (@marked R O n k noisy \o succn) (nseq m p) (inr o) = \sum_(x < k) gain m x * noisy x o.
Proof. by move=> le_mn; rewrite seen_gain //; apply: (small_sum (noisy ^~ o)). Qed.

(* A count, absent against present. *)
Lemma absent_le m : (m <= n)%N ->
  hockey c (seen (@marked R O n k noisy) (nseq m p)) (seen (@marked R O n k noisy \o succn) (nseq m p)) <= B.
Proof.
move=> le_mn; have in_01 : all (fun q => 0 <= q <= 1) (nseq m p) by rewrite all_nseq p_01 orbT.
have [|t sign] := @crossing R c^-1 (nseq m p) n.+3 _ in_01; first by rewrite invr_ge0 ltW.
have gains x : (x < n.+3)%N -> (x < t)%N -> 0 <= gain m x.
  move=> lt_x lt_xt; have := sign x lt_x; rewrite leqNgt lt_xt /= /gain subr_ge0 /binomial.
  by move=> le_x; rewrite -ler_pdivl_mull.
have losses x : (x < n.+3)%N -> (t <= x)%N -> gain m x <= 0.
  move=> lt_x le_tx; have := sign x lt_x; rewrite le_tx /gain subr_le0 /binomial.
  by move=> le_x; rewrite -ler_pdivr_mull.
have lt_kn x : (x < k)%N -> (x < n.+3)%N.
  by move=> lt_x; rewrite (leq_trans lt_x) // -(prednK k_gt0) ltnS (leq_trans le_kn) // leqW.
rewrite /hockey big_sumType /=.
have [lt_rt|le_tr] := ltnP k.-1 t.
  have noised o : Num.max 0 (seen (@marked R O n k noisy) (nseq m p) (inr o)
      - c * seen (@marked R O n k noisy \o succn) (nseq m p) (inr o)) = \sum_(x < k) gain m x * noisy x o.
    rewrite noisy_gain // max_r //; apply: sumr_ge0 => x _; apply: mulr_ge0 => //.
    apply: gains; first exact: lt_kn.
    by rewrite (leq_trans (ltn_ord x)) // -(prednK k_gt0).
  rewrite (eq_bigr _ (fun o _ => noised o)) exchange_big /=.
  apply: le_trans (release_le le_mn); rewrite /hockey sum_option addrC; apply: ler_add.
    rewrite -[X in X <= _](_ : \sum_(x < k) gain m x = _); first by rewrite -none_gain // le_maxr lexx orbT.
    by apply: eq_bigr => x _; rewrite -mulr_sumr noisy_1 mulr1.
  by apply: ler_sum => i _; have := @marked_exact R O n k noisy true (nseq m p) i;
    have := @marked_exact R O n k noisy false (nseq m p) i => -> ->.
rewrite big1 ?add0r => [|i _]; last first.
  rewrite seen_gain // max_l // -oppr_ge0 -sumrN; apply: sumr_ge0 => x _; rewrite oppr_ge0 /=.
  case: ifP => [le_kx|_]; last by rewrite mulr0.
  apply: mulr_le0_ge0; last exact: ler0n.
  by apply: losses; rewrite ?ltn_ord // (leq_trans le_tr) // (leq_trans (leq_pred _)).
pose E := [set o | 0 <= \sum_(x < k) gain m x * noisy x o].
pose w x := \sum_(o in E) noisy x o.
have -> : \sum_o Num.max 0 (seen (@marked R O n k noisy) (nseq m p) (inr o)
    - c * seen (@marked R O n k noisy \o succn) (nseq m p) (inr o)) = \sum_(x < k) gain m x * w x.
  transitivity (\sum_(o in E) \sum_(x < k) gain m x * noisy x o).
    rewrite [RHS]big_mkcond; apply: eq_bigr => o _; rewrite noisy_gain // inE.
    by case: ifP => [/max_r //|/negbT]; rewrite -ltNge => /ltW/max_l.
  by rewrite exchange_big; apply: eq_bigr => x _; rewrite mulr_sumr.
rewrite -(prednK k_gt0); apply: (@event_le R c p k.-1 c_ge1 m w t B) => // [x|x|i lt_i|i /andP[le_ti le_i]|j le_j].
- rewrite sumr_ge0 //= -(noisy_1 x) [leRHS](bigID (mem E)) /= ler_addl; exact: sumr_ge0.
- by split; rewrite mulr_sumr; apply: ler_sum => o _; have [le1 le2] := near x o;
    [apply: (le_trans le2) | apply: (le_trans le1)]; apply: ler_wpmul2r.
- by apply: gains => //; apply: lt_kn; rewrite -(prednK k_gt0) ltnS (leq_trans (ltnW lt_i)).
- by apply: losses => //; apply: lt_kn; rewrite -(prednK k_gt0) ltnS.
exact: told_left.
Qed.

(* Theorem I, absent against present, where e^epsilon (1 - p) is at most 1 and n people are enough for the best number
   of theorem A's left side: the whole table has at most the divergence of that side. *)
Theorem theorem_I_left (V : finType) v (Ds : seq (option V -> R)) : (size Ds <= n)%N ->
  (forall i, (i < size Ds)%N -> told_at_most v p (nth (fun _ => 0) Ds i)) ->
  hockey c (displayed (@marked R O n k noisy) None Ds) (displayed (@marked R O n k noisy) (Some v) Ds)
  <= hockey c (@waiting R n p k) (waiting p k.-1).
Proof.
move=> le_n told; have p_ge0 := ltW p_gt0; have shown_ge0 := @marked_ge0 R O n k noisy noisy_ge0.
have shown_1 := @marked_1 R O n k noisy noisy_1.
apply: (@cell_as_count R V _ _ shown_ge0 shown_1 c p n v false) => // ps in_0p le_ps.
have [j le_j /= le_H] := worst_is_vertex c (@marked R O n k noisy) (@marked R O n k noisy \o succn) in_0p.
apply: (le_trans le_H).
have zeros (K : nat -> 'I_n.+2 + O -> R) : seen K (nseq j p ++ nseq (size ps - j) 0) =1 seen K (nseq j p).
  by move=> y; apply: mean_zeros.
by rewrite (eq_hockey c (zeros _) (zeros _)) absent_le // (leq_trans le_j).
Qed.

End Absent.
