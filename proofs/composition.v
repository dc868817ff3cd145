(* What releases tell together, one after another: fact (F5) of docs/mathematics.md, section 0, on which rule 2 of
   docs/composition.md rests, and rule 6, of section 8. Each release may be chosen after seeing those before. *)

From mathcomp Require Import all_ssreflect all_algebra.
From pkdp Require Import hockey_stick.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Composition.

Variable R : realFieldType.
Implicit Types (T U : finType) (c p q : R).

(* (P, Q) dominates (M, N): no divergence of M and N is larger. *)
Definition dominates T U (P Q : U -> R) (M N : T -> R) := forall c, 0 <= c -> hockey c M N <= hockey c P Q.

(* A first outcome with law M, and a second one whose law K depends on it. *)
Definition both T U (M : T -> R) (K : T -> U -> R) (xy : T * U) : R := M xy.1 * K xy.1 xy.2.

Definition nonnegative T (P : T -> R) := forall x, 0 <= P x.

(* Domination of weighted laws. *)
Lemma dominates_weighted T U (P Q : U -> R) (M N : T -> R) p q : dominates P Q M N -> nonnegative N ->
  0 <= p -> 0 <= q -> \sum_x Num.max 0 (p * M x - q * N x) <= \sum_y Num.max 0 (p * P y - q * Q y).
Proof.
move=> dominated N_ge0; rewrite le_eqVlt => /orP[/eqP <- q_ge0|p_gt0 q_ge0].
  rewrite big1 => [|x _]; first by apply: sumr_ge0 => y _; rewrite le_maxr lexx.
  by rewrite mul0r sub0r max_l // oppr_le0 mulr_ge0.
have scaled (V : finType) (A B : V -> R) y : Num.max 0 (p * A y - q * B y) = p * Num.max 0 (A y - q / p * B y).
  by rewrite maxr_pmulr ?ltW // mulr0 mulrBr mulrA mulrCA divff ?gt_eqF // mulr1.
rewrite (eq_bigr _ (fun x _ => scaled _ M N x)) (eq_bigr _ (fun y _ => scaled _ P Q y)) -!mulr_sumr.
apply: ler_wpmul2l; first exact: ltW.
by apply: dominated; rewrite divr_ge0 // ltW.
Qed.

(* Two outcomes with laws J and J', of which the first has laws M and N: where (P, Q) dominates the first, and, for each
   first outcome x, (M x P', N x Q') the second, the products dominate both. *)
Lemma joint_steps T U T' U' (J J' : T -> U -> R) (M N : T -> R) (P Q : T' -> R) (P' Q' : U' -> R) :
  nonnegative N -> nonnegative P' -> nonnegative Q' -> dominates P Q M N ->
  (forall x c, 0 <= c ->
    \sum_y Num.max 0 (J x y - c * J' x y) <= \sum_y Num.max 0 (M x * P' y - c * N x * Q' y)) ->
  dominates (both P (fun _ => P')) (both Q (fun _ => Q')) (fun xy => J xy.1 xy.2) (fun xy => J' xy.1 xy.2).
Proof.
move=> N_ge0 P'_ge0 Q'_ge0 first second c c_ge0; rewrite /hockey /both.
rewrite -(pair_bigA _ (fun x y => Num.max 0 (J x y - c * J' x y))) /=.
rewrite -(pair_bigA _ (fun x y => Num.max 0 (P x * P' y - c * (Q x * Q' y)))) /=.
apply: (@le_trans _ _ (\sum_x \sum_y Num.max 0 (M x * P' y - c * N x * Q' y))).
  by apply: ler_sum => x _; apply: second.
rewrite exchange_big [leRHS]exchange_big; apply: ler_sum => y _ /=.
have turned (V : finType) (A B : V -> R) : \sum_x Num.max 0 (A x * P' y - c * (B x * Q' y))
    = \sum_x Num.max 0 (P' y * A x - c * Q' y * B x).
  by apply: eq_bigr => x _; rewrite [A x * _]mulrC [B x * _]mulrC mulrA.
under eq_bigr do rewrite -mulrA; rewrite !turned.
by apply: dominates_weighted => //; apply: mulr_ge0.
Qed.

(* (F5) When the first outcome is dominated by (P, Q), and the second, whatever the first was, by (P', Q'), both
   together are dominated by the products. *)
Theorem two_steps T U T' U' (M N : T -> R) (K L : T -> U -> R) (P Q : T' -> R) (P' Q' : U' -> R) :
  nonnegative M -> nonnegative N -> (forall x, nonnegative (L x)) -> nonnegative P' -> nonnegative Q' ->
  dominates P Q M N -> (forall x, dominates P' Q' (K x) (L x)) ->
  dominates (both P (fun _ => P')) (both Q (fun _ => Q')) (both M K) (both N L).
Proof.
move=> M_ge0 N_ge0 L_ge0 P'_ge0 Q'_ge0 first second.
apply: (@joint_steps T U T' U' (fun x y => M x * K x y) (fun x y => N x * L x y) M N) => // x c c_ge0.
under eq_bigr do rewrite mulrA.
by apply: dominates_weighted => //; apply: mulr_ge0.
Qed.

(* Rule 6: where the first outcome has at most d1 at c1, and the second, whatever the first was, at most d2 at c2, both
   together have at most d1 + d2 at c1 c2. *)
Theorem rule_6 T U (M N : T -> R) (K L : T -> U -> R) c1 c2 d1 d2 : 0 <= c1 -> 0 <= c2 ->
  nonnegative M -> \sum_x M x = 1 -> nonnegative N ->
  (forall x, nonnegative (K x)) -> (forall x, \sum_y K x y = 1) -> (forall x, nonnegative (L x)) ->
  hockey c1 M N <= d1 -> (forall x, hockey c2 (K x) (L x) <= d2) ->
  hockey (c1 * c2) (both M K) (both N L) <= d1 + d2.
Proof.
move=> c1_ge0 c2_ge0 M_ge0 M_1 N_ge0 K_ge0 K_1 L_ge0 first second.
pose over x := Num.max 0 (M x - c1 * N x); pose least x := M x - over x.
have over_ge0 x : 0 <= over x by rewrite le_maxr lexx.
have [least_ge0 least_le least_leM] : [/\ forall x, 0 <= least x, forall x, least x <= c1 * N x &
    forall x, least x <= M x].
  split=> x; rewrite /least ?ler_subl_addr.
  - by rewrite subr_ge0 le_maxl M_ge0 ler_subl_addl ler_addr mulr_ge0.
  - by rewrite -ler_subl_addl le_maxr lexx orbT.
  by rewrite ler_addl.
apply: (@le_trans _ _ (\sum_x (over x + least x * hockey c2 (K x) (L x)))); last first.
  rewrite big_split /=; apply: ler_add => //; rewrite -[leRHS]mul1r -M_1 mulr_suml; apply: ler_sum => x _.
  have d2_ge0 : 0 <= d2 by apply: le_trans (hockey_ge0 _ _ _) (second x).
  by apply: ler_pmul => //; apply: hockey_ge0.
rewrite /hockey /both -(pair_bigA _ (fun x y => Num.max 0 (M x * K x y - c1 * c2 * (N x * L x y)))) /=.
apply: ler_sum => x _; rewrite -[over x]mulr1 -(K_1 x) !mulr_sumr -big_split; apply: ler_sum => y _ /=.
rewrite le_maxl addr_ge0 ?mulr_ge0 ?K_ge0 ?le_maxr ?lexx //=.
apply: (@le_trans _ _ (over x * K x y + least x * (K x y - c2 * L x y))); last first.
  by rewrite ler_add2l ler_wpmul2l // le_maxr lexx orbT.
have split_M : over x + least x = M x by rewrite addrC subrK.
rewrite mulrBr addrA -mulrDl split_M ler_add2l ler_opp2 [leRHS]mulrACA; apply: ler_wpmul2r => //.
by rewrite mulr_ge0 // L_ge0.
Qed.

(* Any number n of releases, one after another: K past is the law of the next outcome when these were seen before. *)
Section Several.

Variables (T : finType) (K L : seq T -> T -> R).
Hypotheses (K_ge0 : forall past, nonnegative (K past)) (L_ge0 : forall past, nonnegative (L past)).

Fixpoint outcomes (O : finType) n : finType := if n is m.+1 then [finType of O * outcomes O m] else [finType of unit].

Fixpoint story (O : finType) (M : seq O -> O -> R) past n : outcomes O n -> R :=
  if n is m.+1 then both (M past) (fun x => story M (rcons past x) (n := m)) else fun _ => 1.
Arguments story [O] M past n _.

Lemma story_ge0 (O : finType) (M : seq O -> O -> R) past n : (forall past, nonnegative (M past)) ->
  nonnegative (story M past n).
Proof.
by move=> M_ge0; elim: n past => [|n IH] past x /=; rewrite ?ler01 // mulr_ge0 ?M_ge0 ?IH.
Qed.

Lemma story_1 (O : finType) (M : seq O -> O -> R) past n : (forall past, \sum_x M past x = 1) ->
  \sum_x story M past n x = 1.
Proof.
move=> M_1; elim: n past => [|n IH] past /=; first by rewrite (big_pred1 tt) // => -[].
rewrite -(pair_bigA _ (fun x y => M past x * story M (rcons past x) n y)) -[RHS](M_1 past) /=.
by apply: eq_bigr => x _; rewrite -mulr_sumr IH mulr1.
Qed.

(* Independent releases: the product of laws P i, P (i + 1), ... *)
Fixpoint product (O : finType) (P : nat -> O -> R) i n : outcomes O n -> R :=
  if n is m.+1 then both (P i) (fun _ => product P i.+1 (n := m)) else fun _ => 1.
Arguments product [O] P i n _.

(* (F5), for n releases: where (P i, Q i) dominates the i-th, whatever was seen before, the products dominate all. *)
Theorem all_steps (O : finType) (P Q : nat -> O -> R) n :
  (forall i, nonnegative (P i)) -> (forall i, nonnegative (Q i)) ->
  (forall past, dominates (P (size past)) (Q (size past)) (K past) (L past)) ->
  dominates (product P 0 n) (product Q 0 n) (story K [::] n) (story L [::] n).
Proof.
move=> P_ge0 Q_ge0 each; have product_ge0 (M : nat -> O -> R) i m : (forall i, nonnegative (M i)) ->
    nonnegative (product M i m).
  by move=> M_ge0; elim: m i => [|m IH] i x /=; rewrite ?ler01 // mulr_ge0 ?M_ge0 ?IH.
suff all past : dominates (product P (size past) n) (product Q (size past) n) (story K past n) (story L past n).
  exact: (all [::]).
elim: n past => [|n IH] past; first by move=> c _; apply: lexx.
apply: two_steps => //; try by move=> x; apply: story_ge0.
- exact: product_ge0.
- exact: product_ge0.
by move=> x; rewrite -(size_rcons past x).
Qed.

(* Rule 6, for n releases, each chosen after seeing those before. *)
Theorem rule_6_all (c d : nat -> R) n : (forall i, 0 <= c i) ->
  (forall past, \sum_x K past x = 1) -> (forall past, hockey (c (size past)) (K past) (L past) <= d (size past)) ->
  hockey (\prod_(i < n) c i) (story K [::] n) (story L [::] n) <= \sum_(i < n) d i.
Proof.
move=> c_ge0 K_1 each; suff all past : hockey (\prod_(i < n) c (size past + i)%N) (story K past n) (story L past n)
    <= \sum_(i < n) d (size past + i)%N by apply: (all [::]).
elim: n past => [|n IH] past.
  by rewrite !big_ord0 /hockey big1 // => x _; rewrite mul1r subrr maxxx.
rewrite !big_ord_recl addn0.
have later x : hockey (\prod_(i < n) c (size past + bump 0 i)%N) (story K (rcons past x) n) (story L (rcons past x) n)
    <= \sum_(i < n) d (size past + bump 0 i)%N.
  have := IH (rcons past x); rewrite size_rcons.
  by congr (hockey _ _ _ <= _); apply: eq_bigr => i _; rewrite /bump leq0n addSnnS.
apply: rule_6 => //; first by apply: prodr_ge0.
- by move=> x; apply: story_ge0.
- by move=> x; apply: story_1.
by move=> x; apply: story_ge0.
Qed.

End Several.

End Composition.
