(* Theorem I of docs/mathematics.md, exact from k on and noised below, for n people: from the noise's epsilon on, the
   noised values say nothing of a present target. The noise is any as in noise.v. *)

From mathcomp Require Import all_ssreflect all_algebra.
From pkdp Require Import hockey_stick vertex waiting_time histogram display noise.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

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
