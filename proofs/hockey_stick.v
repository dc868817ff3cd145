(* The hockey-stick divergence of finite laws: facts (F1), (F2) and (F4) of docs/mathematics.md, section 0.
   A law is a function from a finite type of outcomes to an ordered field; e^ε is any number c of that field. *)

From mathcomp Require Import all_ssreflect all_algebra.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section HockeyStick.

Variable R : realFieldType.
Implicit Types (T U I : finType) (c : R).

(* H_c(P, Q): the sum over outcomes of max(0, P(x) - c Q(x)). *)
Definition hockey T c (P Q : T -> R) : R := \sum_x Num.max 0 (P x - c * Q x).

(* P(S), the sum of the weights of an event. *)
Definition weight T (P : T -> R) (S : {set T}) : R := \sum_(x in S) P x.

(* The law of y when x has law P and y has law K(x). *)
Definition push T U (K : T -> U -> R) (P : T -> R) (y : U) : R := \sum_x P x * K x y.

(* Chances are not negative and add up to at most 1. *)
Definition kernel T U (K : T -> U -> R) := forall x, (forall y, 0 <= K x y) /\ \sum_y K x y <= 1.

(* Equal laws have equal divergences. *)
Lemma eq_hockey T c (P P' Q Q' : T -> R) : P =1 P' -> Q =1 Q' -> hockey c P Q = hockey c P' Q'.
Proof. by move=> eqP eqQ; apply: eq_bigr => x _; rewrite eqP eqQ. Qed.

(* No divergence is negative. *)
Lemma hockey_ge0 T c (P Q : T -> R) : 0 <= hockey c P Q.
Proof. by apply: sumr_ge0 => x _; rewrite le_maxr lexx. Qed.

(* The divergence is at least P(S) - c Q(S), for every event S. *)
Lemma event_le_hockey T c (P Q : T -> R) (S : {set T}) :
  weight P S - c * weight Q S <= hockey c P Q.
Proof.
rewrite /weight mulr_sumr -sumrB /hockey [leRHS](bigID (mem S)) /= -[leLHS]addr0.
apply: ler_add; last by apply: sumr_ge0 => x _; rewrite le_maxr lexx.
by apply: ler_sum => x _; rewrite le_maxr lexx orbT.
Qed.

(* It is equal to that where S holds the outcomes with P(x) > c Q(x) and none with P(x) < c Q(x). *)
Lemma hockey_of_event T c (P Q : T -> R) (S : {set T}) :
  (forall x, x \in S -> c * Q x <= P x) -> (forall x, x \notin S -> P x <= c * Q x) ->
  hockey c P Q = weight P S - c * weight Q S.
Proof.
move=> in_S not_in_S; rewrite /weight mulr_sumr -sumrB /hockey [LHS](bigID (mem S)) /=.
rewrite [X in _ + X]big1 ?addr0 => [|x /not_in_S le]; last by rewrite max_l // subr_le0.
by apply: eq_bigr => x /in_S le; rewrite max_r // subr_ge0.
Qed.

(* Such an event exists: the divergence is the largest P(S) - c Q(S) over all events S. *)
Theorem hockey_is_largest T c (P Q : T -> R) :
  (forall S, weight P S - c * weight Q S <= hockey c P Q) /\ exists S, hockey c P Q = weight P S - c * weight Q S.
Proof.
split=> [S|]; first exact: event_le_hockey.
by exists [set x | c * Q x <= P x]; apply: hockey_of_event => x; rewrite inE // -ltNge => /ltW.
Qed.

(* (F2) The divergence is jointly convex: that of two mixtures is at most the mixture of divergences. *)
Theorem hockey_convex I T c (w : I -> R) (P Q : I -> T -> R) : (forall i, 0 <= w i) ->
  hockey c (fun x => \sum_i w i * P i x) (fun x => \sum_i w i * Q i x) <= \sum_i w i * hockey c (P i) (Q i).
Proof.
move=> w_ge0; rewrite /hockey.
under [leRHS]eq_bigr do rewrite mulr_sumr.
rewrite exchange_big /=; apply: ler_sum => x _.
rewrite le_maxl sumr_ge0 => [|i _] /=; last by rewrite mulr_ge0 // le_maxr lexx.
rewrite mulr_sumr -sumrB; apply: ler_sum => i _.
by rewrite mulrCA -mulrBr ler_wpmul2l // le_maxr lexx orbT.
Qed.

(* (F2) With equality where it is shown which part of the mixture was drawn. *)
Theorem hockey_shown I T c (w : I -> R) (P Q : I -> T -> R) : (forall i, 0 <= w i) ->
  hockey c (fun ix : I * T => w ix.1 * P ix.1 ix.2) (fun ix => w ix.1 * Q ix.1 ix.2)
  = \sum_i w i * hockey c (P i) (Q i).
Proof.
move=> w_ge0; rewrite /hockey -(pair_bigA _ (fun i x => Num.max 0 (w i * P i x - c * (w i * Q i x)))) /=.
apply: eq_bigr => i _; rewrite mulr_sumr; apply: eq_bigr => x _.
by rewrite maxr_pmulr // mulr0 mulrBr mulrCA.
Qed.

(* (F1) Post-processing by a random map does not increase the divergence. *)
Theorem post_processing T U c (K : T -> U -> R) (P Q : T -> R) : kernel K ->
  hockey c (push K P) (push K Q) <= hockey c P Q.
Proof.
move=> kernelK; have K_ge0 x y : 0 <= K x y by case: (kernelK x).
have scaled x y : Num.max 0 (P x * K x y - c * (Q x * K x y)) = K x y * Num.max 0 (P x - c * Q x).
  by rewrite maxr_pmulr // mulr0 mulrBr [K x y * (c * _)]mulrCA ![_ * K x y]mulrC.
apply: (@le_trans _ _ (\sum_x \sum_y Num.max 0 (P x * K x y - c * (Q x * K x y)))).
  rewrite exchange_big; apply: ler_sum => y _.
  rewrite le_maxl sumr_ge0 => [|x _] /=; last by rewrite le_maxr lexx.
  by rewrite mulr_sumr -sumrB; apply: ler_sum => x _; rewrite le_maxr lexx orbT.
apply: ler_sum => x _; under eq_bigr do rewrite scaled.
by rewrite -mulr_suml ler_pimull ?le_maxr ?lexx //; case: (kernelK x).
Qed.

(* So laws that are images of P and Q under one random map have at most the divergence of P and Q. *)
Corollary image_le T U c (K : T -> U -> R) (P Q : T -> R) (P' Q' : U -> R) : kernel K ->
  P' =1 push K P -> Q' =1 push K Q -> hockey c P' Q' <= hockey c P Q.
Proof. by move=> kernelK eqP eqQ; rewrite (eq_hockey c eqP eqQ) post_processing. Qed.

(* (F4) What is known of one order of the laws tells the other: H_c(P, Q) = P - c Q + c H_{1/c}(Q, P). *)
Theorem hockey_other_order T c (P Q : T -> R) : 0 < c ->
  hockey c P Q = weight P setT - c * weight Q setT + c * hockey c^-1 Q P.
Proof.
move=> c_gt0; rewrite /weight !(eq_bigl _ _ (in_setT (T := T))) /hockey !mulr_sumr -sumrB -big_split /=.
apply: eq_bigr => x _.
rewrite maxr_pmulr ?ltW // mulr0 mulrBr mulVKf ?gt_eqF // addr_maxr addr0.
by rewrite addrA subrK subrr maxC.
Qed.

End HockeyStick.
