(* Theorem B, value, of docs/mathematics.md, section 5, for n people and two cells: where absence is possible, a table
   whose small cells are suppressed hides which of them the target is in as two counts with a threshold do. *)

From Coq Require Import Ring.
From mathcomp Require Import all_ssreflect all_algebra.
From pkdp Require Import hockey_stick vertex waiting_time histogram between composition.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

(* Two equations that the next proof needs, in any commutative ring. *)
Section Equations.
Variables (T : Type) (zero one : T) (add mul sub : T -> T -> T) (opp : T -> T).
Hypothesis T_ring : ring_theory zero one add mul sub opp (@eq T).
Add Ring T_ring_instance : T_ring.
Local Notation "x + y" := (add x y). Local Notation "x * y" := (mul x y). Local Notation "x - y" := (sub x y).
Local Notation "1" := one.
Lemma equation_in_w q M0 M1 G u F0 S0 X : u * F0 = 1 ->
  q * M1 * u * (G * S0) + (q * (M0 - G * M1 * u) * S0 + (1 - q) * M0 * u * (F0 * X)) = M0 * (q * S0 + (1 - q) * X).
Proof.
move=> uF; transitivity (q * M0 * S0 + (1 - q) * M0 * (u * F0) * X); first by ring.
by rewrite uF; ring.
Qed.
Lemma equation_not_in_w q G u F0 F1 P Y : u * F0 = 1 ->
  let M0 := q * G + (1 - q) * F0 in let M1 := q * F0 + (1 - q) * F1 in
  q * M1 * u * (F0 * P) + (q * (M0 - G * M1 * u) * Y + (1 - q) * M0 * u * (F1 * Y)) = M1 * (q * P + (1 - q) * Y).
Proof.
move=> uF M0 M1; have eq_Y : q * M0 - q * G * M1 * u + (1 - q) * M0 * u * F1 = M1 * (1 - q).
  transitivity (q * M0 * (u * F0) - q * G * M1 * u + (1 - q) * M0 * u * F1); first by rewrite uF; ring.
  by transitivity (u * F0 * M1 * (1 - q)); [rewrite /M0 /M1; ring | rewrite uF; ring].
transitivity (q * M1 * (u * F0) * P + (q * M0 - q * G * M1 * u + (1 - q) * M0 * u * F1) * Y); first by ring.
by rewrite uF eq_Y; ring.
Qed.
End Equations.


Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Lemma ring_of (A : comRingType) : ring_theory (0 : A) 1 +%R *%R (fun x y => x - y) -%R (@eq A).
Proof.
split=> //; [exact: add0r|exact: addrC|exact: addrA|exact: mul1r|exact: mulrC|exact: mulrA|exact: mulrDl|exact: subrr].
Qed.

Section Value.

Variables (R : realFieldType) (p : R).
Hypothesis p_01 : 0 <= p <= 1.
Implicit Types (c q b : R) (ps : seq R) (Phi Psi : (nat -> R) -> R) (f : nat -> R).

(* A measure on counts is given by the mean of every function. One more coin: *)
Definition coin b Phi f : R := b * Phi (f \o succn) + (1 - b) * Phi f.

(* Mixtures of counts of at most n coins with chances of at most p; *)
Definition plain n Phi := exists2 mix : seq (R * seq R),
  all (fun m => [&& 0 <= m.1, all (fun q => 0 <= q <= p) m.2 & (size m.2 <= n)%N]) mix &
  forall f, Phi f = \sum_(m <- mix) m.1 * mean_count m.2 f.

(* and pairs of mixtures of which the second has one more coin, with a chance of at most p. *)
Definition paired n Phi Psi := exists2 mix : seq (R * R * seq R),
  all (fun m => [&& 0 <= m.1.1, 0 <= m.1.2 <= p, all (fun q => 0 <= q <= p) m.2 & (size m.2 <= n)%N]) mix &
  forall f, Phi f = \sum_(m <- mix) m.1.1 * mean_count m.2 f /\
            Psi f = \sum_(m <- mix) m.1.1 * mean_count (m.1.2 :: m.2) f.

Lemma plain_add n Phi Psi : plain n Phi -> plain n Psi -> plain n (fun f => Phi f + Psi f).
Proof.
case=> mix ok eq_Phi [mix' ok' eq_Psi]; exists (mix ++ mix'); first by rewrite all_cat ok.
by move=> f; rewrite big_cat eq_Phi eq_Psi.
Qed.

Lemma plain_scale n c Phi : 0 <= c -> plain n Phi -> plain n (fun f => c * Phi f).
Proof.
move=> c_ge0 [mix ok eq_Phi]; exists [seq (c * m.1, m.2) | m <- mix].
  by rewrite all_map; apply: sub_all ok => m /= /and3P[m_ge0 -> ->]; rewrite mulr_ge0.
by move=> f; rewrite big_map eq_Phi mulr_sumr; apply: eq_bigr => m _; rewrite mulrA.
Qed.

Lemma plain_0 n : plain n (fun _ => 0).
Proof. by exists [::] => // f; rewrite big_nil. Qed.

Lemma plain_leq n m Phi : (n <= m)%N -> plain n Phi -> plain m Phi.
Proof.
move=> le_nm [mix ok eq_Phi]; exists mix => //.
by apply: sub_all ok => x /and3P[-> -> le]; rewrite (leq_trans le).
Qed.

Lemma plain_coin n b Phi : 0 <= b <= p -> plain n Phi -> plain n.+1 (coin b Phi).
Proof.
move=> b_in [mix ok eq_Phi]; exists [seq (m.1, b :: m.2) | m <- mix].
  by rewrite all_map; apply: sub_all ok => m /= /and3P[-> -> ?]; rewrite b_in.
move=> f; rewrite big_map /coin !eq_Phi !mulr_sumr -big_split; apply: eq_bigr => m _ /=.
by rewrite mean_count_cons mulrDr ![_ * (m.1 * _)]mulrCA.
Qed.

Lemma paired_add n Phi Psi Phi' Psi' : paired n Phi Psi -> paired n Phi' Psi' ->
  paired n (fun f => Phi f + Phi' f) (fun f => Psi f + Psi' f).
Proof.
case=> mix ok eqs [mix' ok' eqs']; exists (mix ++ mix'); first by rewrite all_cat ok.
by move=> f; rewrite !big_cat /=; case: (eqs f) => -> ->; case: (eqs' f) => -> ->.
Qed.

Lemma paired_scale n c Phi Psi : 0 <= c -> paired n Phi Psi -> paired n (fun f => c * Phi f) (fun f => c * Psi f).
Proof.
move=> c_ge0 [mix ok eqs]; exists [seq (c * m.1.1, m.1.2, m.2) | m <- mix].
  by rewrite all_map; apply: sub_all ok => m /= /and4P[m_ge0 -> -> ->]; rewrite mulr_ge0.
move=> f; rewrite !big_map; case: (eqs f) => -> ->; rewrite !mulr_sumr.
by split; apply: eq_bigr => m _; rewrite mulrA.
Qed.

Lemma paired_0 n : paired n (fun _ => 0) (fun _ => 0).
Proof. by exists [::] => // f; rewrite !big_nil. Qed.

Lemma paired_leq n m Phi Psi : (n <= m)%N -> paired n Phi Psi -> paired m Phi Psi.
Proof.
move=> le_nm [mix ok eqs]; exists mix => //.
by apply: sub_all ok => x /and4P[-> -> -> le]; rewrite (leq_trans le).
Qed.

Lemma paired_coin n b Phi Psi : 0 <= b <= p -> paired n Phi Psi -> paired n.+1 (coin b Phi) (coin b Psi).
Proof.
move=> b_in [mix ok eqs]; exists [seq (m.1, b :: m.2) | m <- mix].
  by rewrite all_map; apply: sub_all ok => m /= /and4P[-> -> -> ?]; rewrite b_in.
move=> f; rewrite !big_map /coin; case: (eqs f) => -> ->; case: (eqs (f \o succn)) => -> ->.
rewrite !mulr_sumr -!big_split; split; apply: eq_bigr => m _ /=.
  by rewrite mean_count_cons mulrDr ![_ * (m.1.1 * _)]mulrCA.
have -> : mean_count (m.1.2 :: b :: m.2) f = mean_count (b :: m.1.2 :: m.2) f.
  by apply: mean_count_perm; rewrite -[_ :: _ :: _]/([:: m.1.2] ++ [:: b] ++ m.2) perm_catCA.
by rewrite [in RHS]mean_count_cons mulrDr ![_ * (m.1.1 * _)]mulrCA.
Qed.

Lemma paired_of_plain n b Phi : 0 <= b <= p -> plain n Phi -> paired n Phi (coin b Phi).
Proof.
move=> b_in [mix ok eq_Phi]; exists [seq (m.1, b, m.2) | m <- mix].
  by rewrite all_map; apply: sub_all ok => m /= /and3P[-> -> ->]; rewrite b_in.
move=> f; rewrite !big_map /coin !eq_Phi; split=> //; rewrite !mulr_sumr -big_split; apply: eq_bigr => m _ /=.
by rewrite mean_count_cons mulrDr ![_ * (m.1 * _)]mulrCA.
Qed.

Lemma eq_paired n Phi Psi Phi' Psi' : Phi =1 Phi' -> Psi =1 Psi' -> paired n Phi Psi -> paired n Phi' Psi'.
Proof. by move=> eq1 eq2 [mix ok eqs]; exists mix => // f; rewrite -eq1 -eq2. Qed.

(* People: each is in w with chance q, and, told that it is not w, in v with chance b. *)
Implicit Types (people : seq (R * R)).

(* The measure of the number of people in v when y people are in w, where `first` is 1 at 0 and 0 elsewhere; or when at
   most y are, where it is 1 everywhere. *)
Variable first : nat -> R.
Hypotheses (first_ge0 : forall y, 0 <= first y) (first_log_concave : log_concave_seq first).

Fixpoint share people y f : R :=
  if people is (q, b) :: people' then
    q * (if y is y'.+1 then share people' y' f else 0) + (1 - q) * coin b (share people' y) f
  else first y * f 0%N.

Definition mass people y := share people y (fun _ => 1).

Definition allowed people := all (fun qb => (0 <= qb.1 <= p) && (0 <= qb.2 <= p)) people.

Lemma coin_1 b Phi : coin b Phi (fun _ => 1) = Phi (fun _ => 1).
Proof. by rewrite /coin -[_ \o _]/(fun _ => 1) -mulrDl addrC subrK mul1r. Qed.

Lemma mass_cons0 q b people : mass ((q, b) :: people) 0 = (1 - q) * mass people 0.
Proof. by rewrite /mass /= mulr0 add0r coin_1. Qed.

Lemma mass_cons q b people y : mass ((q, b) :: people) y.+1 = q * mass people y + (1 - q) * mass people y.+1.
Proof. by rewrite /mass /= coin_1. Qed.

Lemma share_plain people y : allowed people -> plain (size people) (share people y).
Proof.
elim: people y => [|[q b] people IH] y /=.
  move=> _; exists [:: (first y, [::])]; first by rewrite /= first_ge0.
  by move=> f; rewrite big_seq1.
case/andP=> /andP[/andP[q_ge0 q_le] b_in] ok; have q_le1 : q <= 1 by case/andP: p_01 => _; apply: le_trans.
apply: plain_add; last by apply: plain_scale; rewrite ?subr_ge0 //; apply: plain_coin => //; apply: IH.
apply: plain_scale => //; case: y => [|y]; first exact: plain_0.
by apply: plain_leq (IH _ ok); apply: leqnSn.
Qed.

Lemma mass_ge0 people y : allowed people -> 0 <= mass people y.
Proof.
move/(share_plain y) => [mix ok]; rewrite /mass => ->; rewrite big_seq.
apply: sumr_ge0 => m /(allP ok) /and3P[m_ge0 _ _].
by rewrite /mean_count mean_const mulr1.
Qed.

Lemma mass_log_concave people : allowed people -> log_concave_seq (mass people).
Proof.
elim: people => [|[q b] people IH] /=.
  by move=> _ i j le_ij; rewrite /mass /= !mulr1; apply: first_log_concave.
case/andP=> /andP[/andP[q_ge0 q_le] b_in] ok; have q_le1 : q <= 1 by case/andP: p_01 => _; apply: le_trans.
apply: (@log_concave_coin _ (mass people) _ q); rewrite ?q_ge0 ?q_le1 //.
- by move=> x; apply: mass_ge0.
- exact: IH.
- exact: mass_cons0.
exact: mass_cons.
Qed.

Lemma plain_zero n Phi : plain n Phi -> Phi (fun _ => 1) = 0 -> forall f, Phi f = 0.
Proof.
case=> mix ok eq_Phi; rewrite eq_Phi => sum_0 f; rewrite eq_Phi big_seq; apply: big1 => m in_mix.
have weights (m' : R * seq R) : m'.1 * mean_count m'.2 (fun _ => 1) = m'.1 by rewrite /mean_count mean_const mulr1.
move: sum_0; rewrite (eq_bigr _ (fun m' _ => weights m')) => /eqP.
rewrite big_seq psumr_eq0 => [|m' /(allP ok) /and3P[]] //.
by move/allP/(_ m in_mix); rewrite in_mix => /eqP ->; rewrite mul0r.
Qed.

Lemma coin_scale b c Phi f : coin b (fun f => c * Phi f) f = c * coin b Phi f.
Proof. by rewrite /coin mulrDr ![_ * (c * _)]mulrCA. Qed.

(* Given their numbers, those in w in both lives can be coupled: who is left is alike, but for one coin. *)
Lemma share_paired people y : allowed people ->
  paired (size people) (fun f => mass people y * share people y.+1 f) (fun f => mass people y.+1 * share people y f).
Proof.
elim: people y => [|[q b] people IH] y.
  move=> _; exists [:: (first y * first y.+1, 0, [::])].
    by rewrite /= mulr_ge0 ?first_ge0 // lexx; case/andP: p_01 => ->.
  move=> f; rewrite !big_seq1 /mass /= mean_count_cons mul0r add0r subr0 mul1r !mulr1 mulrA; split=> //.
  by rewrite mulrA [first y.+1 * _]mulrC.
move=> ok_all; have /= /andP[/andP[/andP[q_ge0 q_le] b_in] ok] := ok_all.
have q_le1 : q <= 1 by case/andP: p_01 => _; apply: le_trans.
set M0 := mass _ y; set M1 := mass _ y.+1.
have zero : (M0 == 0) || (M1 == 0) -> paired (size people).+1 (fun f => M0 * share ((q, b) :: people) y.+1 f)
    (fun f => M1 * share ((q, b) :: people) y f).
  move=> some_0; apply: eq_paired (paired_0 _) => f; apply/esym/eqP; rewrite mulf_eq0;
    case/orP: some_0 => is_0; rewrite ?is_0 //.
    by apply/orP; right; rewrite (plain_zero (share_plain y.+1 ok_all) (eqP is_0)).
  by apply/orP; right; rewrite (plain_zero (share_plain y ok_all) (eqP is_0)).
set F0 := mass people y; set F1 := mass people y.+1; pose G := if y is y'.+1 then mass people y' else 0.
have eq_M0 : M0 = q * G + (1 - q) * F0 by rewrite /M0 /mass /= coin_1; case: y @G @F0 @F1 {M0 M1 zero}.
have eq_M1 : M1 = q * F0 + (1 - q) * F1 by apply: mass_cons.
have F_ge0 x := mass_ge0 x ok; have G_ge0 : 0 <= G by rewrite /G; case: y {M0 M1 zero F0 F1 G eq_M0 eq_M1}.
have G_F1 : G * F1 <= F0 * F0.
  rewrite /G /F0 /F1; case: y {M0 M1 zero F0 F1 G eq_M0 eq_M1 G_ge0} => [|y]; first by rewrite mul0r mulr_ge0.
  exact: mass_log_concave.
have [F0_0|F0_n0] := eqVneq F0 0.
  apply: zero; rewrite -mulf_eq0 eq_M0 eq_M1 F0_0 !mulr0 addr0 add0r.
  have : G * F1 = 0 by apply: le_anti; rewrite mulr_ge0 ?F_ge0 // andbT (le_trans G_F1) // F0_0 mulr0.
  by rewrite mulrACA => ->; rewrite mulr0.
have F0_gt0 : 0 < F0 by rewrite lt_neqAle eq_sym F0_n0 F_ge0.
have M0_ge0 : 0 <= M0 := mass_ge0 y ok_all; have M1_ge0 : 0 <= M1 := mass_ge0 y.+1 ok_all.
have u_ge0 : 0 <= F0^-1 by rewrite invr_ge0 F_ge0.
pose before f := if y is y'.+1 then share people y' f else 0.
have both_w : paired (size people).+1 (fun f => q * M1 * F0^-1 * (G * share people y f))
    (fun f => q * M1 * F0^-1 * (F0 * before f)).
  apply: paired_scale; first by rewrite !mulr_ge0.
  rewrite /G /F0 /before.
  case: y {M0 M1 zero F0 F1 G eq_M0 eq_M1 G_ge0 G_F1 F0_n0 F0_gt0 M0_ge0 M1_ge0 u_ge0 before} => [|y].
    by apply: eq_paired (paired_0 _) => f; rewrite ?mul0r ?mulr0.
  exact: paired_leq (leqnSn _) (IH y ok).
have one_w : paired (size people).+1 (fun f => q * (M0 - G * M1 * F0^-1) * share people y f)
    (fun f => q * (M0 - G * M1 * F0^-1) * coin b (share people y) f).
  apply: paired_scale; last by apply: paired_leq (leqnSn _) (paired_of_plain b_in (share_plain y ok)).
  rewrite mulr_ge0 // subr_ge0 ler_pdivr_mulr // eq_M0 eq_M1 [leRHS]mulrDl mulrDr; apply: ler_add.
    by rewrite mulrCA mulrA.
  by rewrite mulrCA -mulrA ler_wpmul2l ?subr_ge0.
have none_w : paired (size people).+1 (fun f => (1 - q) * M0 * F0^-1 * (F0 * coin b (share people y.+1) f))
    (fun f => (1 - q) * M0 * F0^-1 * (F1 * coin b (share people y) f)).
  apply: paired_scale; first by rewrite !mulr_ge0 // subr_ge0.
  by apply: eq_paired (paired_coin b_in (IH y ok)) => f; apply: coin_scale.
apply: eq_paired (paired_add both_w (paired_add one_w none_w)) => f /=.
  by apply: (equation_in_w (ring_of R)); rewrite mulVf.
rewrite eq_M0 eq_M1; apply: (equation_not_in_w (ring_of R)); by rewrite mulVf.
Qed.

(* The mean over independent people of a function of how many are in v, and in w. *)
Fixpoint pair_mean people (g : nat -> nat -> R) : R :=
  if people is (q, b) :: people' then
    q * pair_mean people' (fun x y => g x y.+1)
    + (1 - q) * (b * pair_mean people' (fun x y => g x.+1 y) + (1 - b) * pair_mean people' g)
  else g 0%N 0%N.

Lemma eq_pair_mean people g h : (forall x y, (y <= size people)%N -> g x y = h x y) ->
  pair_mean people g = pair_mean people h.
Proof.
elim: people g h => [|[q b] people IH] g h eq_gh /=; first exact: eq_gh.
by congr (_ * _ + _ * (_ * _ + _ * _)); apply: IH => x y le_y; apply: eq_gh; rewrite //= leqW.
Qed.

Lemma share_mean people y f :
  share people y f = pair_mean people (fun x y' => if (y' <= y)%N then first (y - y') * f x else 0).
Proof.
elim: people y f => [|[q b] people IH] y f /=; first by rewrite subn0.
congr (_ * _ + _ * _); last by rewrite /coin !IH.
case: y => [|y]; last by rewrite IH; apply: eq_pair_mean.
have zero (g : nat -> nat -> R) : (forall x y, g x y = 0) -> pair_mean people g = 0.
  elim: people {IH} g => [|[q' b'] people IH'] g g_0 /=; first exact: g_0.
  by rewrite !IH' // !(mulr0, addr0).
by rewrite zero.
Qed.

Lemma same_coin b x : b * x + (1 - b) * x = x.
Proof. by rewrite -mulrDl addrC subrK mul1r. Qed.

Lemma pair_mean_w people (g : nat -> R) : pair_mean people (fun _ y => g y) = mean_count [seq qb.1 | qb <- people] g.
Proof.
by elim: people g => [//|[q b] people IH] g /=; rewrite mean_count_cons -!IH same_coin.
Qed.

Variables (n k : nat).
Hypothesis k_gt1 : (1 < k)%N.

Local Notation W := (@waiting R n p).

Lemma waiting_1 t : \sum_w W t w = 1.
Proof.
have := @weight_waiting_all R n p t n.+1 (ltnSn _); rewrite /weight => <-.
by apply: eq_bigl => w; rewrite inE ltn_ord.
Qed.

(* Two laws whose divergences are those of pairs of mixtures. *)
Lemma paired_le Phi Psi s t : paired n Phi Psi -> 0 <= s -> 0 <= t ->
  \sum_u Num.max 0 (s * Phi (fun x => @release R n k x.+1 u) - t * Psi (fun x => release R k x u))
  <= Phi (fun _ => 1) * \sum_w Num.max 0 (s * W k.-1 w - t * W k w).
Proof.
case=> mix ok eqs s_ge0 t_ge0; pose D := \sum_w Num.max 0 (s * W k.-1 w - t * W k w); rewrite -/D.
have k_gt0 : (0 < k)%N by apply: ltnW.
have D_ge0 : 0 <= D by apply: sumr_ge0 => w _; rewrite le_maxr lexx.
have D_st : s - t <= D.
  rewrite -[s]mulr1 -[t]mulr1 -{1}(waiting_1 k.-1) -(waiting_1 k) !mulr_sumr -sumrB /D.
  by apply: ler_sum => w _; rewrite le_maxr lexx orbT.
case: (eqs (fun _ => 1)) => -> _; rewrite mulr_suml.
apply: (@le_trans _ _ (\sum_(m <- mix) m.1.1 * \sum_u Num.max 0
    (s * seen (@release R n k \o succn) m.2 u - t * seen (@release R n k) (m.1.2 :: m.2) u))).
  under [leRHS]eq_bigr do rewrite mulr_sumr.
  rewrite exchange_big /=; apply: ler_sum => u _.
  case: (eqs (fun x => @release R n k x.+1 u)) => -> _; case: (eqs (fun x => @release R n k x u)) => _ ->.
  rewrite le_maxl; apply/andP; split.
    by rewrite big_seq; apply: sumr_ge0 => m /(allP ok) /and4P[m_ge0 _ _ _]; rewrite mulr_ge0 // le_maxr lexx.
  rewrite !mulr_sumr -sumrB big_seq [leRHS]big_seq; apply: ler_sum => m /(allP ok) /and4P[m_ge0 _ _ _].
  by rewrite ![_ * (m.1.1 * _)]mulrCA -mulrBr ler_wpmul2l // le_maxr lexx orbT.
rewrite big_seq [leRHS]big_seq; apply: ler_sum => m /(allP ok) /and4P[m_ge0 /andP[b_ge0 b_le] in_0p le_n].
rewrite /mean_count mean_const mulr1; apply: ler_wpmul2l => //; move: (m.1.2) b_ge0 b_le => b b_ge0 b_le.
have b_le1 : 0 <= 1 - b by rewrite subr_ge0; case/andP: p_01 => _; apply: le_trans.
have in_01 : all (fun q => 0 <= q <= 1) m.2.
  by apply: sub_all in_0p => q /andP[-> q_le]; case/andP: p_01 => _; apply: le_trans.
set P := seen _ m.2; have P_ge0 u : 0 <= P u by apply: mean_ge0 => // tosses; apply: ler0n.
have P_1 : \sum_u P u = 1.
  rewrite -[RHS](weight_all m.2 (fun x => release_1 R n k x.+1)) /weight; apply: eq_bigl => u; by rewrite inE.
apply: (@le_trans _ _ (b * (\sum_u Num.max 0 (s * P u - t * P u))
    + (1 - b) * \sum_u Num.max 0 (s * P u - t * seen (@release R n k) m.2 u))).
  rewrite !mulr_sumr -big_split; apply: ler_sum => u _ /=; rewrite le_maxl; apply/andP; split.
    by rewrite addr_ge0 ?mulr_ge0 ?le_maxr ?lexx.
  rewrite [seen _ (b :: _) u]/seen mean_count_cons -/(seen _ m.2 u) -/(P u) -{1}(same_coin b (s * P u)) mulrDr.
  rewrite opprD addrACA ![t * (_ * _)]mulrCA -!mulrBr.
  by apply: ler_add; apply: ler_wpmul2l; rewrite // le_maxr lexx orbT.
apply: (@le_trans _ _ (b * D + (1 - b) * D)); last by rewrite same_coin.
apply: ler_add; apply: ler_wpmul2l => //.
  apply: (@le_trans _ _ (\sum_u Num.max 0 (s - t) * P u)); last first.
    by rewrite -mulr_sumr P_1 mulr1 le_maxl D_ge0.
  by apply: ler_sum => u _; rewrite -mulrBl maxr_pmull // mul0r.
apply: dominates_weighted => // [c _|u]; last by apply: mean_ge0 => // tosses; apply: ler0n.
by have [] := theorem_A c k_gt0 p_01 in_0p le_n.
Qed.

(* Where M and N people in w are given, in the two lives. *)
Lemma share_le people y s t : allowed people -> (size people <= n)%N -> 0 <= s -> 0 <= t ->
  \sum_u Num.max 0 (s * share people y.+1 (fun x => @release R n k x.+1 u)
                    - t * share people y (fun x => release R k x u))
  <= \sum_w Num.max 0 (s * mass people y.+1 * W k.-1 w - t * mass people y * W k w).
Proof.
move=> ok le_n s_ge0 t_ge0; set M := mass people y.+1; set N := mass people y.
have share_ge0 z (f : nat -> R) : (forall x, 0 <= f x) -> 0 <= share people z f.
  move=> f_ge0; case: (share_plain z ok) => mix mix_ok ->; rewrite big_seq; apply: sumr_ge0 => m.
  move=> /(allP mix_ok) /and3P[m_ge0 in_0p _]; rewrite mulr_ge0 //; apply: mean_ge0 => [|tosses]; last exact: f_ge0.
  by apply: sub_all in_0p => q /andP[-> q_le]; case/andP: p_01 => _; apply: le_trans.
have W_ge0 r w : 0 <= W r w by apply: mean_ge0 => [|tosses]; rewrite ?ler0n // all_nseq p_01 orbT.
have released_ge0 x u : 0 <= @release R n k x u by apply: ler0n.
have M_ge0 : 0 <= M := mass_ge0 y.+1 ok; have N_ge0 : 0 <= N := mass_ge0 y ok.
have [M_0|M_n0] := eqVneq M 0.
  rewrite big1 => [|u _]; first by apply: sumr_ge0 => w _; rewrite le_maxr lexx.
  rewrite (plain_zero (share_plain y.+1 ok) M_0) mulr0 sub0r max_l // oppr_le0 mulr_ge0 //.
  by apply: share_ge0.
have [N_0|N_n0] := eqVneq N 0.
  under [leRHS]eq_bigr => w _ do rewrite N_0 mulr0 mul0r subr0 max_r ?mulr_ge0 //.
  rewrite -mulr_sumr waiting_1 mulr1.
  under eq_bigr => u _ do rewrite (plain_zero (share_plain y ok) N_0) mulr0 subr0 max_r ?mulr_ge0 ?share_ge0 //.
  rewrite -mulr_sumr; apply: ler_wpmul2l => //; rewrite le_eqVlt; apply/orP; left; apply/eqP.
  have [mix _ eq_share] := share_plain y.+1 ok; rewrite /M /mass eq_share.
  under eq_bigr do rewrite eq_share; rewrite exchange_big; apply: eq_bigr => m _.
  rewrite -mulr_sumr /mean_count -mean_sum; congr (_ * _); apply: eq_mean => tosses /=.
  rewrite (bigD1 (thresholded n k (successes tosses).+1)) //= /release eqxx big1 ?addr0 // => u.
  by rewrite eq_sym => /negbTE ->.
have same u : Num.max 0 (s * share people y.+1 (fun x => @release R n k x.+1 u)
    - t * share people y (fun x => release R k x u))
    = Num.max 0 (s / N * (N * share people y.+1 (fun x => @release R n k x.+1 u))
    - t / M * (M * share people y (fun x => release R k x u))).
  by rewrite ![_ / _ * (_ * _)]mulrA !divfK.
rewrite (eq_bigr _ (fun u _ => same u)).
apply: (le_trans (paired_le (paired_leq le_n (share_paired y ok)) (divr_ge0 s_ge0 N_ge0) (divr_ge0 t_ge0 M_ge0))).
rewrite -/N -/(mass people y.+1) -/M mulr_sumr; apply: ler_sum => w _.
have eq_s : N * M * (s / N) = s * M by rewrite mulrC mulrA divfK.
have eq_t : N * M * (t / M) = t * N by rewrite [N * M]mulrC [M * N * _]mulrC mulrA divfK.
by rewrite maxr_pmulr ?mulr_ge0 // mulr0 mulrBr [_ * (s / N * _)]mulrA [_ * (t / M * _)]mulrA eq_s eq_t.
Qed.

End Value.

Section TwoCells.

Variables (R : realFieldType) (p : R) (n k : nat).
Hypotheses (p_01 : 0 <= p <= 1) (k_gt1 : (1 < k)%N).
Implicit Types (people : seq (R * R)).

(* What is seen of a number of people in w is a member of a sequence, or the sum of its first members. *)
Lemma seen_as_share (o : option 'I_n.+2) : exists y0 (first : nat -> R),
  [/\ forall y, 0 <= first y, log_concave_seq first,
      forall y, (y <= n)%N -> (thresholded n k y == o)%:R = if (y <= y0.+1)%N then first (y0.+1 - y)%N else 0 &
      forall y, (y <= n)%N -> (thresholded n k y.+1 == o)%:R = if (y <= y0)%N then first (y0 - y)%N else 0].
Proof.
case: o => [i|]; last first.
  exists k.-2, (fun _ => 1); split=> [y|i j _|y _|y _]; rewrite ?ler01 ?lexx //.
    by rewrite /thresholded; case: k k_gt1 => [|[|k']] //= _; rewrite [(y <= k'.+1)%N]leqNgt; case: (k'.+1 < y)%N.
  by rewrite /thresholded; case: k k_gt1 => [|[|k']] //= _; rewrite ltnS [(y <= k')%N]leqNgt; case: (k' < y)%N.
have [le_k|lt_i] := leqP k i; last first.
  have never y : (y <= n.+1)%N -> (thresholded n k y == Some i) = false.
    rewrite /thresholded => lt_y; case: (leqP k y) => // le_y; apply/negbTE.
    rewrite -[Some _ == Some i]/(inord y == i) -val_eqE /= inordK //.
    by rewrite neq_ltn (leq_trans lt_i le_y) orbT.
  exists 0%N, (fun _ => 0); split=> [y|a b _|y le_y|y le_y]; rewrite ?lexx ?mulr0 ?never //; try by case: ifP.
  exact: leqW.
have exactly y : (y <= n.+1)%N -> (thresholded n k y == Some i) = (y == i :> nat).
  rewrite /thresholded => lt_y; case: (leqP k y) => [le_y|lt_k].
    by rewrite -[Some _ == Some i]/(inord y == i) -val_eqE /= inordK.
  by apply/esym/negbTE; rewrite neq_ltn (leq_trans lt_k le_k).
have i_gt0 : (0 < i)%N by rewrite (leq_trans _ le_k) // ltnW.
exists i.-1, (fun y => (y == 0%N)%:R); split=> [y|a b le_ab|y le_y|y le_y].
- exact: ler0n.
- by case: a le_ab => [|a] le_ab; rewrite /= ?mulr0 ?mul0r // mulr_ge0 ?ler0n.
- rewrite exactly; last exact: leqW.
  by rewrite prednK // subn_eq0 eqn_leq; case: (y <= i)%N.
rewrite exactly // -{1}(prednK i_gt0) eqSS subn_eq0 eqn_leq.
by case: (y <= i.-1)%N.
Qed.

(* What is seen of both cells, w first, when so many more are in v and in w. *)
Definition two_counts people v w (seen : option 'I_n.+2 * option 'I_n.+2) : R :=
  pair_mean people (fun x y => (thresholded n k (y + w) == seen.1)%:R * (thresholded n k (x + v) == seen.2)%:R).

Local Notation W := (@waiting R n p).

(* Theorem B, value, for two cells v and w: at most n people, each in w, in v or absent, in w with a chance of at most p
   and, told that it is not w, in v with one of at most p. With the target in v and in w, in this order; the other order
   is that of the exchanged cells. *)
Theorem theorem_B_value people : allowed p people -> (size people <= n)%N ->
  dominates (both (W k) (fun _ => W k.-1)) (both (W k.-1) (fun _ => W k)) (two_counts people 1 0)
    (two_counts people 0 1).
Proof.
move=> ok le_n; have k_gt0 : (0 < k)%N by apply: ltnW.
pose qs := [seq qb.1 | qb <- people].
have in_0p : all (fun q => 0 <= q <= p) qs by rewrite all_map; apply: sub_all ok => qb /andP[].
have in_01 : all (fun q => 0 <= q <= 1) qs.
  by apply: sub_all in_0p => q /andP[-> q_le]; case/andP: p_01 => _; apply: le_trans.
have W_ge0 r w : 0 <= @waiting R n p r w by apply: mean_ge0 => [|tosses]; rewrite ?ler0n // all_nseq p_01 orbT.
apply: (@joint_steps R _ _ _ _ (fun o u => two_counts people 1 0 (o, u)) (fun o u => two_counts people 0 1 (o, u))
  (seen (@release R n k) qs) (seen (@release R n k \o succn) qs)) => //.
- by move=> o; apply: mean_ge0 => // tosses; apply: ler0n.
- by move=> c _; have [_] := theorem_A c k_gt0 p_01 in_0p (etrans (congr1 (leq^~ n) (size_map _ _)) le_n).
move=> o c c_ge0; have [y0 [first [first_ge0 first_lc eq_one eq_none]]] := seen_as_share o.
have le_all y : (y <= size people)%N -> (y <= n)%N by move=> le_y; apply: leq_trans le_n.
have eq_J u : two_counts people 1 0 (o, u) = share first people y0.+1 (fun x => @release R n k x.+1 u).
  rewrite share_mean; apply: eq_pair_mean => x y /le_all le_y /=; rewrite addn0 addn1 eq_one //.
  by case: ifP; rewrite ?mul0r.
have eq_J' u : two_counts people 0 1 (o, u) = share first people y0 (fun x => @release R n k x u).
  rewrite share_mean; apply: eq_pair_mean => x y /le_all le_y /=; rewrite addn0 addn1 eq_none //.
  by case: ifP; rewrite ?mul0r.
have eq_M : seen (@release R n k) qs o = mass first people y0.+1.
  rewrite /seen -pair_mean_w /mass share_mean; apply: eq_pair_mean => x y /le_all le_y; rewrite /release eq_one //.
  by case: ifP; rewrite ?mulr1.
have eq_N : seen (@release R n k \o succn) qs o = mass first people y0.
  rewrite /seen -pair_mean_w /mass share_mean; apply: eq_pair_mean => x y /le_all le_y; rewrite /= /release eq_none //.
  by case: ifP; rewrite ?mulr1.
under eq_bigr do rewrite eq_J eq_J'; rewrite eq_M eq_N.
have := share_le p_01 first_ge0 first_lc k_gt1 y0 ok le_n ler01 c_ge0.
by under eq_bigr do rewrite mul1r; under [X in _ <= X -> _]eq_bigr do rewrite mul1r.
Qed.

End TwoCells.
