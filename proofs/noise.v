(* What noise behind a threshold gives against anybody: docs/mathematics.md, section 6. The noise is any for which the
   values that are shown are finitely many, and counts that differ by one show each with chances that differ by a factor
   of at most c; two-sided geometric noise is of this kind where values beyond bounds are shown as the bounds. *)

From mathcomp Require Import all_ssreflect all_algebra.
From pkdp Require Import hockey_stick.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Noise.

Variables (R : realFieldType) (O : finType).

(* Where P is at most c Q and something more, that is at most the divergence. *)
Lemma hockey_slack (T : finType) c (P Q more : T -> R) :
  (forall x, 0 <= more x) -> (forall x, P x <= c * Q x + more x) -> hockey c P Q <= \sum_x more x.
Proof. by move=> more_ge0 le_P; apply: ler_sum => x _; rewrite le_maxl more_ge0 ler_subl_addl le_P. Qed.

(* noisy x: the law of the noisy value of the count x. It is published where it is one of `large`, such as those from
   the release threshold on. *)
Variables (c : R) (k : nat) (noisy : nat -> O -> R) (large : pred O).
Hypotheses (c_ge1 : 1 <= c) (noisy_ge0 : forall x o, 0 <= noisy x o) (noisy_1 : forall x, \sum_o noisy x o = 1).
Hypothesis near : forall x o, noisy x.+1 o <= c * noisy x o /\ noisy x o <= c * noisy x.+1 o.

(* What is seen of a cell with this count: None, suppressed, below k or where the noisy value is not large; else the
   noisy value. *)
Definition cell x (seen : option O) : R :=
  match seen with
  | Some o => if (k <= x)%N && large o then noisy x o else 0
  | None => if (k <= x)%N then \sum_(o | ~~ large o) noisy x o else 1
  end.

(* The chance that a count that has just reached k is published. *)
Definition delta0 : R := \sum_(o | large o) noisy k o.

Lemma sum_option (f : option O -> R) : \sum_s f s = f None + \sum_o f (Some o).
Proof.
rewrite (bigD1 None) //=; congr (_ + _); rewrite (reindex_omap some id) /=; last by case.
by apply: eq_bigl => o; rewrite eqxx.
Qed.

Let s := \sum_(o | ~~ large o) noisy k o.

Lemma delta0_rest : s = 1 - delta0.
Proof. by rewrite -(noisy_1 k) (bigID large) /= -/delta0 [delta0 + _]addrC addrK. Qed.

Lemma delta0_ge0 : 0 <= delta0.
Proof. by apply: sumr_ge0. Qed.

Lemma cell_ge0 x seen : 0 <= cell x seen.
Proof. by case: seen => [o|] /=; case: ifP => _; rewrite ?lexx ?ler01 ?noisy_ge0 ?sumr_ge0. Qed.

Lemma cell_1 x : \sum_seen cell x seen = 1.
Proof.
rewrite sum_option /=; case: (k <= x)%N => /=; last by rewrite big1 ?addr0.
by rewrite -big_mkcond addrC -(noisy_1 x) [RHS](bigID large).
Qed.

Lemma cell_small x seen : (x < k)%N -> cell x seen = (seen == None)%:R.
Proof. by rewrite ltnNge => /negbTE /= not_k; case: seen => [o|]; rewrite /= not_k. Qed.

Lemma cell_k seen : cell k seen = if seen is Some o then if large o then noisy k o else 0 else s.
Proof. by rewrite /cell leqnn. Qed.

(* Counts that are both below k, or both at least k, are near. *)
Lemma cell_near x seen : x.+1 != k -> cell x.+1 seen <= c * cell x seen /\ cell x seen <= c * cell x.+1 seen.
Proof.
have c_ge0 : 0 <= c by apply: le_trans c_ge1.
move=> not_k; rewrite /cell leq_eqVlt eq_sym (negbTE not_k) /= ltnS.
case: (k <= x)%N; case: seen => [o|] /=; rewrite ?mulr0 ?mulr1 ?lexx ?c_ge1 //.
  by case: (large o) (near x o); rewrite ?mulr0 ?lexx.
by rewrite !mulr_sumr; split; apply: ler_sum => o _; case: (near x o).
Qed.

(* One cell: presence. With the target counted or not, whatever the law w of the others' count, which may be known, the
   divergence at c is at most delta0, in both orders. *)
Theorem noise_presence (I : finType) (w : I -> R) (count : I -> nat) : (forall i, 0 <= w i) -> \sum_i w i = 1 ->
  let present seen := \sum_i w i * cell (count i).+1 seen in let absent seen := \sum_i w i * cell (count i) seen in
  hockey c present absent <= delta0 /\ hockey c absent present <= delta0.
Proof.
have c_ge0 : 0 <= c by apply: le_trans c_ge1.
move=> w_ge0 w_1; have one x : hockey c (cell x.+1) (cell x) <= delta0 /\ hockey c (cell x) (cell x.+1) <= delta0.
  have [x_k|not_k] := eqVneq x.+1 k; last first.
    have none : \sum_(seen : option O) (0 : R) <= delta0 by rewrite big1 ?delta0_ge0.
    by split; apply: le_trans none; apply: hockey_slack => // seen; rewrite addr0; case: (cell_near seen not_k).
  have lt_xk : (x < k)%N by rewrite -x_k.
  rewrite x_k; split.
    apply: (@le_trans _ _ (\sum_seen if seen is Some o then if large o then noisy k o else 0 else 0)).
      apply: hockey_slack => [[o|]|[o|]] //; rewrite ?cell_k ?cell_small //= ?mulr0 ?add0r ?addr0 //.
        by case: ifP.
      by rewrite mulr1 (le_trans _ c_ge1) // delta0_rest ler_subl_addl ler_addr delta0_ge0.
    by rewrite sum_option add0r -big_mkcond.
  apply: (@le_trans _ _ (\sum_seen if seen is Some o then 0 else delta0)).
    apply: hockey_slack => [[o|]|seen]; rewrite ?lexx ?delta0_ge0 // cell_small // cell_k; case: seen => [o|] /=.
      by rewrite addr0; case: ifP => _; rewrite ?mulr0 // mulr_ge0.
    by rewrite -ler_subl_addr -delta0_rest ler_pemull // sumr_ge0.
  by rewrite sum_option big1 ?addr0.
split; apply: (le_trans (hockey_convex _ _ _ w_ge0)); rewrite -[leRHS]mul1r -w_1 mulr_suml;
  by apply: ler_sum => i _; apply: ler_wpmul2l; case: (one (count i)).
Qed.

(* Two cells with noise of their own, x and y people in them besides the target: the target in the first, or the
   second. *)
Lemma two_noisy_cells x y : hockey (c * c) (fun seen => cell x.+1 seen.1 * cell y seen.2)
                                           (fun seen => cell x seen.1 * cell y.+1 seen.2) <= delta0.
Proof.
have c_ge0 : 0 <= c by apply: le_trans c_ge1.
have cc_ge1 : 1 <= c * c by rewrite mulr_ege1.
have s_le1 : s <= 1 by rewrite delta0_rest ler_subl_addl ler_addr delta0_ge0.
have s_ge0 : 0 <= s by apply: sumr_ge0.
have times (a b a' b' : R) : 0 <= a -> 0 <= b -> 0 <= a' -> a <= c * a' -> b <= c * b' -> a * b <= c * c * (a' * b').
  by move=> a_ge0 b_ge0 a'_ge0 le_a le_b; rewrite mulrACA ler_pmul.
have summed (f g : option O -> R) : \sum_(seen : option O * option O) f seen.1 * g seen.2 = (\sum_a f a) * \sum_b g b.
  by rewrite -(pair_bigA _ (fun a b => f a * g b)) mulr_suml; apply: eq_bigr => a _; rewrite mulr_sumr.
have [x_k|x_k] := eqVneq x.+1 k.
  have lt_xk : (x < k)%N by rewrite -x_k.
  pose shown (seen : option O) := if seen is Some o then if large o then noisy k o else 0 else 0.
  have shown_ge0 seen : 0 <= shown seen by case: seen => [o|] //=; case: ifP.
  apply: (@le_trans _ _ (\sum_(seen : option O * option O) shown seen.1 * cell y seen.2)); last first.
    by rewrite summed cell_1 mulr1 sum_option add0r -big_mkcond.
  apply: hockey_slack => [[a b]|[a b]]; first by rewrite /= mulr_ge0 ?cell_ge0.
  rewrite x_k /= cell_k (cell_small a lt_xk); case: a => [o|] /=; first by rewrite mul0r mulr0 add0r.
  rewrite mul0r addr0; have [y_k|y_k] := eqVneq y.+1 k.
    have lt_yk : (y < k)%N by rewrite -y_k.
    rewrite y_k (cell_small b lt_yk) cell_k mul1r; case: b => [o|] /=; last by rewrite mulr1 ler_pemull.
    by rewrite mulr0 mulr_ge0 ?mulr_ge0 //; case: ifP.
  by apply: times; rewrite ?cell_ge0 ?ler01 ?mulr1 ?(le_trans s_le1) //; case: (cell_near b y_k).
have [y_k|y_k] := eqVneq y.+1 k; last first.
  have none : \sum_(seen : option O * option O) (0 : R) <= delta0 by rewrite big1 ?delta0_ge0.
  apply: le_trans none; apply: hockey_slack => // -[a b]; rewrite addr0.
  by apply: times; rewrite ?cell_ge0 //; [case: (cell_near a x_k) | case: (cell_near b y_k)].
have lt_yk : (y < k)%N by rewrite -y_k.
pose none (seen : option O) : R := delta0 * (seen == None)%:R.
apply: (@le_trans _ _ (\sum_(seen : option O * option O) cell x.+1 seen.1 * none seen.2)); last first.
  by rewrite summed cell_1 mul1r sum_option big1 ?addr0 /none ?mulr1 // => o; rewrite mulr0.
apply: hockey_slack => [[a b]|[a b]]; first by rewrite /= !mulr_ge0 ?cell_ge0 ?delta0_ge0 ?ler0n.
rewrite y_k /= cell_k (cell_small b lt_yk) /none; case: b => [o|] /=.
  by rewrite !mulr0 addr0 !mulr_ge0 ?cell_ge0 //; case: ifP.
rewrite !mulr1 -ler_subl_addr -[X in X - _]mulr1 -mulrBr -delta0_rest mulrA; apply: ler_wpmul2r => //.
have [le_x _] := cell_near a x_k; apply: (le_trans le_x); rewrite -mulrA; apply: ler_wpmul2l => //.
by rewrite ler_pemull ?cell_ge0.
Qed.

(* Two cells: value. With the target in the first or in the second, whatever the law w of the numbers of others in both,
   the divergence at c^2 is at most delta0, in both orders. *)
Theorem noise_value (I : finType) (w : I -> R) (first second : I -> nat) : (forall i, 0 <= w i) -> \sum_i w i = 1 ->
  let in_first seen := \sum_i w i * (cell (first i).+1 seen.1 * cell (second i) seen.2) in
  let in_second seen := \sum_i w i * (cell (first i) seen.1 * cell (second i).+1 seen.2) in
  hockey (c * c) in_first in_second <= delta0 /\ hockey (c * c) in_second in_first <= delta0.
Proof.
move=> w_ge0 w_1; split; apply: (le_trans (hockey_convex _ _ _ w_ge0)); rewrite -[leRHS]mul1r -w_1 mulr_suml;
  apply: ler_sum => i _; apply: ler_wpmul2l; rewrite ?two_noisy_cells //.
apply: le_trans (two_noisy_cells (second i) (first i)).
rewrite {1}/hockey (reindex (fun seen : option O * option O => (seen.2, seen.1))) /=; last first.
  by exists (fun seen => (seen.2, seen.1)) => -[a b].
rewrite le_eqVlt; apply/orP; left; apply/eqP; apply: eq_bigr => seen _.
by congr (Num.max 0 (_ - _ * _)); apply: mulrC.
Qed.

(* Without a threshold before the noise nothing is left: the divergence is 0, of one cell at c, of two at c^2. *)
Theorem noise_alone (I : finType) (w : I -> R) (first second : I -> nat) : k = 0%N -> (forall i, 0 <= w i) ->
  let with_target x (i : bool) seen := \sum_j w j * cell (x j + i) seen in
  let in_cell (i : bool) seen := \sum_j w j * (cell (first j + i) seen.1 * cell (second j + ~~ i) seen.2) in
  forall i, hockey c (with_target first i) (with_target first (~~ i)) = 0 /\
            hockey (c * c) (in_cell i) (in_cell (~~ i)) = 0.
Proof.
have c_ge0 : 0 <= c by apply: le_trans c_ge1.
move=> k_0 w_ge0 with_target in_cell i.
have near_cell x e seen : cell (x + nat_of_bool e) seen <= c * cell (x + ~~ e) seen.
  by have := @cell_near x seen; rewrite k_0 => /(_ isT) []; case: e; rewrite /= ?addn0 ?addn1.
have zero (T : finType) d (P Q : T -> R) : (forall seen, P seen <= d * Q seen) -> hockey d P Q = 0.
  move=> le_P; apply: le_anti; rewrite hockey_ge0 andbT.
  by have := @hockey_slack _ d P Q (fun=> 0); rewrite big1 // => -> // seen; rewrite addr0.
split; apply: zero => seen; rewrite mulr_sumr; apply: ler_sum => j _; rewrite [leRHS]mulrCA; apply: ler_wpmul2l => //.
by rewrite [leRHS]mulrACA ler_pmul ?cell_ge0.
Qed.

End Noise.

Section Geometric.

(* Two-sided geometric noise, a = e^(-epsilon0), where counts are at most m, noisy values below 0 are shown as 0, and
   those above m as m. *)
Variables (R : realFieldType) (a : R) (m : nat).
Hypotheses (a_gt0 : 0 < a) (a_le1 : a <= 1) (m_gt0 : (0 < m)%N).

Let total := 1 + a.
Let gap (x y : nat) : nat := (x - y + (y - x))%N.
Let mass x y := if y == 0%N then a ^+ x else if (y < m)%N then (1 - a) * a ^+ gap x y else a ^+ (m - x).

Definition geometric (count : nat) (y : 'I_m.+1) : R := mass (minn count m) y / total.

Let a_ge0 : 0 <= a. Proof. exact: ltW. Qed.
Let total_gt0 : 0 < total. Proof. by rewrite addr_gt0 ?ltr01. Qed.

Lemma mass_ge0 x y : 0 <= mass x y.
Proof. by rewrite /mass; do 2?[case: ifP => _]; rewrite ?mulr_ge0 ?exprn_ge0 ?subr_ge0. Qed.

(* The chance of a value of at most y. *)
Lemma mass_up_to x y : (y < m)%N ->
  \sum_(i < y.+1) mass x i = if (x <= y)%N then total - a ^+ (y.+1 - x) else a ^+ (x - y).
Proof.
elim: y => [|y IH] lt_y; rewrite big_ord_recr /=.
  rewrite big_ord0 add0r /mass /= subn0 leqn0; case: eqP => [->|//].
  by rewrite expr0 subn0 expr1 /total addrK.
rewrite IH ?(ltnW lt_y) // /mass /= lt_y /gap mulrBl mul1r.
have [le_xy|lt_yx] := leqP x y.
  rewrite (leqW le_xy) (eqP (leqW le_xy : (x - y.+1 == 0)%N)) add0n -exprS (subSn (leqW le_xy)).
  by rewrite addrA subrK.
have [le_xy'|lt_yx'] := leqP x y.+1.
  have -> : x = y.+1 by apply/eqP; rewrite eqn_leq le_xy' lt_yx.
  by rewrite !subnn subSnn addn0 expr0 expr1 mulr1 subSnn expr1 addrCA subrr addr0 /total addrK.
rewrite (eqP (ltnW lt_yx' : (y.+1 - x == 0)%N)) addn0 -exprS -subSn ?(ltnW lt_yx') // subSS.
by rewrite addrCA subrr addr0.
Qed.

Lemma geometric_ge0 x y : 0 <= geometric x y.
Proof. by rewrite divr_ge0 ?mass_ge0 ?(ltW total_gt0). Qed.

Lemma mass_all x : (x <= m)%N -> \sum_(y < m.+1) mass x y = total.
Proof.
move=> le_x; rewrite big_ord_recr /= [X in _ + X]/mass ltnn (gtn_eqF m_gt0).
have := mass_up_to x (_ : (m.-1 < m)%N); rewrite prednK // leqnn => -> //.
have [le_x'|] := leqP x m.-1; first by rewrite subrK.
rewrite prednK // => le_m; have -> : x = m by apply/eqP; rewrite eqn_leq le_x.
by rewrite subnn expr0 -subn1 subKn // expr1 addrC.
Qed.

Lemma geometric_1 x : \sum_y geometric x y = 1.
Proof. by rewrite -mulr_suml mass_all ?geq_minr // divff // gt_eqF. Qed.

(* Counts that differ by one show every value with chances that differ by a factor of at most 1/a. *)
Lemma geometric_near x y : geometric x.+1 y <= a^-1 * geometric x y /\ geometric x y <= a^-1 * geometric x.+1 y.
Proof.
have near (i j : nat) : (i <= j.+1)%N -> a ^+ j <= a^-1 * a ^+ i.
  by move=> le_i; rewrite mulrC ler_pdivl_mulr // -exprSr ler_wiexpn2l.
have le_c z : 0 <= z -> z <= a^-1 * z by move=> z_ge0; rewrite ler_pemull // invr_ge1 ?unitf_gt0.
suff mass_near z : (z < m)%N -> mass z.+1 y <= a^-1 * mass z y /\ mass z y <= a^-1 * mass z.+1 y.
  rewrite /geometric !mulrA !ler_pmul2r ?invr_gt0 //; have [le_m|lt_x] := leqP m x.
    by rewrite !(minn_idPr _) ?(leqW le_m) //; split; apply: le_c; apply: mass_ge0.
  by rewrite !(minn_idPl _) ?(ltnW lt_x) //; apply: mass_near.
move=> lt_z; rewrite /mass; case: ifP => _; first by split; apply: near; rewrite // ltnW.
case: ifP => _; last by split; apply: near; rewrite -(subnSK lt_z) // leqW.
have up : (gap z.+1 y <= (gap z y).+1)%N.
  by rewrite -addSn leq_add ?leq_sub2l // leq_subLR addnS ltnS -leq_subLR.
have down : (gap z y <= (gap z.+1 y).+1)%N.
  by rewrite -addnS leq_add ?leq_sub2r // leq_subLR addnS -addSn -leq_subLR.
by split; rewrite mulrCA; apply: ler_wpmul2l; rewrite ?subr_ge0 //; apply: near.
Qed.

(* The chances of values of at least r. *)
Lemma geometric_from x r : (x <= m)%N -> (0 < r <= m)%N ->
  \sum_(y : 'I_m.+1 | (r <= y)%N) geometric x y
  = if (x < r)%N then a ^+ (r - x) / total else 1 - a ^+ (x.+1 - r) / total.
Proof.
move=> le_x /andP[]; case: r => // r _ lt_r; rewrite -mulr_suml (minn_idPl le_x).
have -> : \sum_(y : 'I_m.+1 | (r < y)%N) mass x y = total - \sum_(y < r.+1) mass x y.
  rewrite (big_ord_widen m.+1 (mass x) (leqW lt_r)) -(mass_all le_x).
  rewrite [in RHS](bigID (fun y : 'I_m.+1 => (y < r.+1)%N)) /=.
  by rewrite addrAC subrr add0r; apply: eq_bigl => y; rewrite ltnNge.
rewrite mass_up_to // ltnS subSS; case: ifP => _; first by rewrite opprB addrCA subrr addr0.
by rewrite mulrBl divff // gt_eqF.
Qed.

(* So it is noise of the kind above, with c = 1/a = e^epsilon0; and what delta0 is for the release threshold r. *)
Theorem geometric_noise k r : (k <= m)%N -> (0 < r <= m)%N ->
  [/\ 1 <= a^-1, forall x y, 0 <= geometric x y, forall x, \sum_y geometric x y = 1,
      forall x y, geometric x.+1 y <= a^-1 * geometric x y /\ geometric x y <= a^-1 * geometric x.+1 y &
      delta0 k geometric (fun y : 'I_m.+1 => (r <= y)%N)
      = if (k < r)%N then a ^+ (r - k) / (1 + a) else 1 - a ^+ (k.+1 - r) / (1 + a)].
Proof.
move=> le_k r_in; split; [|exact: geometric_ge0|exact: geometric_1|exact: geometric_near|exact: geometric_from].
by rewrite invr_ge1 ?unitf_gt0.
Qed.

End Geometric.
