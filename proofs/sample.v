(* Theorem S of docs/mathematics.md, a secret sample, for n people: where it is a secret who was drawn, a table of those
   drawn hides who is in the population as mixtures of waiting times do. First what mixtures do. *)

From mathcomp Require Import all_ssreflect all_algebra.
From pkdp Require Import hockey_stick vertex waiting_time histogram display composition.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Mixtures.

Variable R : realFieldType.
Implicit Types (T U : finType) (b c : R).

(* The law of an outcome that has law P with chance b, else law Q. *)
Definition mixed T b (P Q : T -> R) (x : T) : R := b * P x + (1 - b) * Q x.

Lemma mixed_ge0 T b (P Q : T -> R) : 0 <= b <= 1 -> nonnegative P -> nonnegative Q -> nonnegative (mixed b P Q).
Proof. by case/andP=> b_ge0 b_le1 P_ge0 Q_ge0 x; rewrite addr_ge0 // mulr_ge0 ?subr_ge0. Qed.

(* Lemma of mixtures: against the law Q alone, divergences at c are those of P at 1 + (c - 1)/b, times b; *)
Theorem mixture_left T b c (P Q : T -> R) : 0 < b ->
  hockey c (mixed b P Q) Q = b * hockey (1 + (c - 1) / b) P Q.
Proof.
move=> b_gt0; rewrite /hockey mulr_sumr; apply: eq_bigr => x _.
rewrite maxr_pmulr ?ltW // mulr0 mulrBr mulrA mulrDr mulr1 [b * (_ / b)]mulrC divfK ?gt_eqF //.
congr (Num.max 0 _); rewrite /mixed -addrA -mulrBl -[X in _ = _ + X]mulNr; congr (_ + _ * _).
by rewrite opprD opprB addrCA addrA.
Qed.

(* in the other order, those at c b/(1 - c (1 - b)), times 1 - c (1 - b), or nothing where that is not above 0. *)
Theorem mixture_right T b c (P Q : T -> R) : 0 <= b -> 0 <= c -> nonnegative P -> nonnegative Q ->
  hockey c Q (mixed b P Q) = Num.max 0 (1 - c * (1 - b)) * hockey (c * b / (1 - c * (1 - b))) Q P.
Proof.
move=> b_ge0 c_ge0 P_ge0 Q_ge0; rewrite /hockey mulr_sumr; apply: eq_bigr => x _.
have -> : Q x - c * mixed b P Q x = (1 - c * (1 - b)) * Q x - c * b * P x.
  by rewrite /mixed mulrDr opprD addrA !mulrA addrAC mulrBl mul1r.
move: (1 - c * (1 - b)) => d; have [le_0|gt0] := lerP d 0.
  rewrite mul0r max_l // -[0]addr0; apply: ler_add; first by rewrite mulr_le0_ge0.
  by rewrite oppr_le0 !mulr_ge0.
by rewrite maxr_pmulr ?ltW // mulr0 mulrBr mulrA [_ * (_ / _)]mulrC divfK ?gt_eqF.
Qed.

(* Where the pair (P', Q') dominates (P, Q) in both orders, their mixtures do; *)
Lemma mixture_le T U b c (P Q : T -> R) (P' Q' : U -> R) : 0 < b <= 1 -> 0 <= c ->
  nonnegative P -> nonnegative Q -> nonnegative P' -> nonnegative Q' ->
  (forall d, hockey d P Q <= hockey d P' Q' /\ hockey d Q P <= hockey d Q' P') ->
  hockey c (mixed b P Q) Q <= hockey c (mixed b P' Q') Q' /\ hockey c Q (mixed b P Q) <= hockey c Q' (mixed b P' Q').
Proof.
case/andP=> b_gt0 b_le1 c_ge0 P_ge0 Q_ge0 P'_ge0 Q'_ge0 le_PQ; split.
  by have [le_d _] := le_PQ (1 + (c - 1) / b); rewrite !mixture_left // ler_wpmul2l // ltW.
have [_ le_d] := le_PQ (c * b / (1 - c * (1 - b))).
by have b_ge0 := ltW b_gt0; rewrite !mixture_right // ler_wpmul2l // le_maxr lexx.
Qed.

(* and with a larger chance the mixture is further apart. *)
Lemma mixture_mono T b b' c (P Q : T -> R) : 0 <= b <= b' -> 0 <= c -> nonnegative P -> nonnegative Q ->
  \sum_x P x = 1 -> \sum_x Q x = 1 ->
  hockey c (mixed b P Q) Q <= hockey c (mixed b' P Q) Q /\ hockey c Q (mixed b P Q) <= hockey c Q (mixed b' P Q).
Proof.
case/andP=> b_ge0; rewrite le_eqVlt => /orP[/eqP -> //|lt_b] c_ge0 P_ge0 Q_ge0 P_1 Q_1.
have b'_gt0 : 0 < b' by apply: le_lt_trans lt_b.
pose s := b / b'; have s_ge0 : 0 <= s by rewrite divr_ge0 // ltW.
have s_le1 : s <= 1 by rewrite ler_pdivr_mulr // mul1r ltW.
pose w (i : bool) := if i then s else 1 - s; have w_ge0 i : 0 <= w i by case: i; rewrite /= ?subr_ge0.
pose L (i : bool) := if i then mixed b' P Q else Q.
have eq_mixed : mixed b P Q =1 fun x => \sum_i w i * L i x.
  move=> x; rewrite big_bool /= /mixed mulrDr !mulrA divfK ?gt_eqF // -addrA -mulrDl; congr (_ + _ * _).
  by rewrite mulrBr mulr1 divfK ?gt_eqF // [RHS]addrC addrA subrK.
have eq_Q : Q =1 fun x => \sum_i w i * Q x.
  by move=> x; rewrite big_bool /= -mulrDl addrC subrK mul1r.
have least (A B : T -> R) : \sum_x A x = 1 -> \sum_x B x = 1 -> hockey c Q Q <= hockey c A B.
  move=> A_1 B_1; apply: (@le_trans _ _ (Num.max 0 (1 - c))).
    rewrite /hockey (eq_bigr (fun x => Num.max 0 (1 - c) * Q x)) => [|x _].
      by rewrite -mulr_sumr Q_1 mulr1.
    by rewrite maxr_pmull // mul0r mulrBl mul1r.
  have -> : 1 - c = \sum_x (A x - c * B x) by rewrite sumrB -mulr_sumr A_1 B_1 mulr1.
  by rewrite le_maxl hockey_ge0; apply: ler_sum => x _; rewrite le_maxr lexx orbT.
have mixed_1 : \sum_x mixed b' P Q x = 1 by rewrite big_split /= -!mulr_sumr P_1 Q_1 !mulr1 addrC subrK.
split.
  rewrite (eq_hockey c eq_mixed eq_Q); apply: (le_trans (hockey_convex c L (fun _ => Q) w_ge0)); rewrite big_bool /=.
  apply: (@le_trans _ _ (s * hockey c (mixed b' P Q) Q + (1 - s) * hockey c (mixed b' P Q) Q)).
    by rewrite ler_add2l ler_wpmul2l ?subr_ge0 // least.
  by rewrite -mulrDl addrC subrK mul1r.
rewrite (eq_hockey c eq_Q eq_mixed); apply: (le_trans (hockey_convex c (fun _ => Q) L w_ge0)); rewrite big_bool /=.
apply: (@le_trans _ _ (s * hockey c Q (mixed b' P Q) + (1 - s) * hockey c Q (mixed b' P Q))).
  by rewrite ler_add2l ler_wpmul2l ?subr_ge0 // least.
by rewrite -mulrDl addrC subrK mul1r.
Qed.

End Mixtures.

Section Sample.

Variables (R : realFieldType) (V : finType).
Implicit Types (b c p q : R) (v w u : V) (others : seq (V * R)) (ps : seq R).

(* Everybody's record is known. A person with record u who is drawn with chance q is then in the data, else absent. *)
Definition draw u q (r : option V) : R := mixed q (fun r => (Some u == r)%:R) (fun r => (None == r)%:R) r.

(* The law of the table of those drawn, its cells suppressed below k, from a population of people who each have a record
   and a chance to be drawn. *)
Definition sampled n k (population : seq (V * R)) : {ffun V -> option 'I_n.+2} -> R :=
  record_law (@table V n k) [seq draw uq.1 uq.2 | uq <- population].

(* The chances of those with record u. *)
Definition chances_in (population : seq (V * R)) u := [seq uq.2 | uq <- population & uq.1 == u].

Lemma draw_mean u q (g : option V -> R) : \sum_r draw u q r * g r = q * g (Some u) + (1 - q) * g None.
Proof.
rewrite (bigD1 None) //= (bigD1 (Some u)) //= big1 ?addr0 => [|r /andP[r_none r_u]].
  by rewrite addrC /draw /mixed !eqxx /= !mulr1 !mulr0 addr0 add0r.
by rewrite /draw /mixed ![_ == r]eq_sym (negbTE r_none) (negbTE r_u) !mulr0 addr0 mul0r.
Qed.

(* The numbers of those drawn in the cells are independent. *)
Lemma cells_independent population (h : V -> nat -> R) :
  record_mean [seq draw uq.1 uq.2 | uq <- population] (fun records => \prod_u h u (count_mem (Some u) records))
  = \prod_u mean_count (chances_in population u) (h u).
Proof.
elim: population h => [|[u0 q] population IH] h //=; rewrite draw_mean.
rewrite (IH (fun u x => h u ((Some u0 == Some u) + x)%N)) (IH (fun u x => h u (false + x)%N)).
rewrite (bigD1 u0) // [X in _ + _ * X](bigD1 u0) // [RHS](bigD1 u0) //= /chances_in /= !eqxx /=.
rewrite mean_count_cons -!/(chances_in _ _) [RHS]mulrDl -!mulrA; congr (_ * (_ * _) + _ * (_ * _)).
  by apply: eq_bigr => u; rewrite eq_sym => /negbTE u0_u; rewrite -[Some u0 == _]/(u0 == u) u0_u.
by apply: eq_bigr => u; rewrite eq_sym => /negbTE ->.
Qed.

Lemma sampled_cells n k population t :
  @sampled n k population t = \prod_u seen (@release R n k) (chances_in population u) (t u).
Proof.
rewrite -(cells_independent population (fun u x => release R k x (t u))); apply: eq_record_mean => records.
have -> : (table n k records == t) = [forall u, thresholded n k (count_mem (Some u) records) == t u].
  apply/eqP/forallP => [<- u|same]; first by rewrite ffunE.
  by apply/ffunP => u; rewrite ffunE; apply/eqP.
case: forallP => [same|/forallP]; first by rewrite big1 // => u _; rewrite /release same.
by rewrite negb_forall => /existsP[u /negbTE differs]; rewrite (bigD1 u) //= /release differs mul0r.
Qed.

Lemma chances_in_le p population u : all (fun uq => 0 <= uq.2 <= p) population ->
  all (fun q => 0 <= q <= p) (chances_in population u).
Proof. by move=> /allP in_p; apply/allP => q /mapP[uq]; rewrite mem_filter => /andP[_ /in_p] le_p ->. Qed.

Lemma size_chances_in population u : (size (chances_in population u) <= size population)%N.
Proof. by rewrite size_map size_filter count_size. Qed.

(* What is published of two cells. *)
Definition fix_two (O : Type) v w (oo : O * O) u := if u == v then Some oo.1 else if u == w then Some oo.2 else None.

Lemma push_two (O : finType) (rest : V -> O -> R) v w (A B : O -> R) t : v != w ->
  push (fun oo => beside rest (fix_two v w oo)) (both A (fun _ => B)) t
  = A (t v) * (B (t w) * \prod_(u | (u != v) && (u != w)) rest u (t u)).
Proof.
rewrite eq_sym => w_v; have eq_beside oo : beside rest (fix_two v w oo) t
    = (oo.1 == t v)%:R * ((oo.2 == t w)%:R * \prod_(u | (u != v) && (u != w)) rest u (t u)).
  rewrite /beside (bigD1 v) //= (bigD1 w) //= /fix_two !eqxx (negbTE w_v); congr (_ * (_ * _)).
  by apply: eq_bigr => u /andP[/negbTE -> /negbTE ->].
rewrite /push (bigD1 (t v, t w)) //= eq_beside !eqxx !mul1r [X in _ + X]big1 ?addr0 ?mulrA // => -[o o'].
rewrite -pair_eqE /= negb_and => differs; rewrite eq_beside /=.
by case: eqP differs => /= [_|_ _]; rewrite ?mul0r ?mulr0 // => /negbTE ->; rewrite mul0r !mulr0.
Qed.

Variables (p : R) (n k : nat).
Hypotheses (p_in : 0 < p <= 1) (k_gt0 : (0 < k)%N).

Local Notation W := (@waiting R n p).
Local Notation published := (seen (@release R n k)).

(* The pair for a sample: theorem A's, the first mixed into the second with chance p. *)
Definition drawn_pair := mixed p (W k.-1) (W k).

Let p_01 : 0 <= p <= 1. Proof. by case/andP: p_in => /ltW -> ->. Qed.

Lemma in_01 ps : all (fun q => 0 <= q <= p) ps -> all (fun q => 0 <= q <= 1) ps.
Proof. by apply: sub_all => q /andP[-> q_le]; case/andP: p_01 => _; apply: le_trans. Qed.

Lemma published_ge0 ps : all (fun q => 0 <= q <= p) ps -> nonnegative (published ps).
Proof. by move/in_01 => in_01 o; apply: mean_ge0 => // tosses; apply: ler0n. Qed.

Lemma published_1 ps : \sum_o published ps o = 1.
Proof. by rewrite -(weight_all ps (release_1 R n k)) /weight; apply: eq_bigl => o; rewrite inE. Qed.

Lemma waiting_ge0 t : nonnegative (W t).
Proof. by move=> w; apply: mean_ge0 => [|tosses]; rewrite ?ler0n // all_nseq p_01 orbT. Qed.

(* One cell, its number of others being secret: the target drawn with chance b, or not there. *)
Lemma drawn_count c b ps : 0 <= c -> 0 <= b <= p -> all (fun q => 0 <= q <= p) ps -> (size ps <= n)%N ->
  hockey c (published (b :: ps)) (published ps) <= hockey c drawn_pair (W k) /\
  hockey c (published ps) (published (b :: ps)) <= hockey c (W k) drawn_pair.
Proof.
move=> c_ge0 b_in ps_in le_n; pose more := seen (@release R n k \o succn) ps.
have eq_more : published (b :: ps) =1 mixed b more (published ps) by [].
have more_ge0 : nonnegative more by move=> o; apply: mean_ge0 => [|tosses]; rewrite ?ler0n ?in_01.
have more_1 : \sum_o more o = 1.
  by rewrite -(weight_all ps (fun x => release_1 R n k x.+1)) /weight; apply: eq_bigl => o; rewrite inE.
have same : published ps =1 published ps by [].
rewrite (eq_hockey c eq_more same) (eq_hockey c same eq_more).
have ps_ge0 := published_ge0 ps_in.
have [le_l le_r] := mixture_mono b_in c_ge0 more_ge0 ps_ge0 more_1 (published_1 ps).
have [le_l' le_r'] := mixture_le p_in c_ge0 more_ge0 ps_ge0 (waiting_ge0 k.-1) (waiting_ge0 k)
  (fun d => theorem_A d k_gt0 p_01 ps_in le_n).
by rewrite (le_trans le_l) // (le_trans le_r).
Qed.

(* Theorem S, presence: for at most n others, everybody being drawn with a chance of at most p, the pair dominates the
   table, with the target in the population or not, in both orders. *)
Theorem theorem_S c v b others : 0 <= c -> 0 <= b <= p -> all (fun uq => 0 <= uq.2 <= p) others ->
  (size others <= n)%N ->
  hockey c (@sampled n k ((v, b) :: others)) (sampled k others) <= hockey c drawn_pair (W k) /\
  hockey c (@sampled n k others) (sampled k ((v, b) :: others)) <= hockey c (W k) drawn_pair.
Proof.
move=> c_ge0 b_in others_in le_n; pose A := published (b :: chances_in others v).
pose rest u := published (chances_in others u).
have in_cells u := chances_in_le u others_in.
have size_cells u := leq_trans (size_chances_in others u) le_n.
have rest_ge0 u : nonnegative (rest u) by apply: published_ge0.
have inside : sampled k ((v, b) :: others) =1 push (fun o => beside rest (fix_one v o)) A.
  move=> t; rewrite push_one sampled_cells (bigD1 v) //= /chances_in /= eqxx; congr (_ * _).
  by apply: eq_bigr => u; rewrite eq_sym => /negbTE ->.
have outside : sampled k others =1 push (fun o => beside rest (fix_one v o)) (rest v).
  by move=> t; rewrite push_one sampled_cells (bigD1 v).
have kernel_rest := kernel_beside rest_ge0 (fun u => published_1 _) (@fix_one _ _ v).
have [le_l le_r] := drawn_count c_ge0 b_in (in_cells v) (size_cells v).
by split; [apply: le_trans le_l | apply: le_trans le_r]; apply: (image_le c kernel_rest).
Qed.

(* Theorem S, value: with the target in v or in w, the pair and, in the other direction, the pair again dominate the
   table. Exchanging v and w gives the other order. *)
Theorem theorem_S_value v w b b' others : v != w -> 0 <= b <= p -> 0 <= b' <= p ->
  all (fun uq => 0 <= uq.2 <= p) others -> (size others <= n)%N ->
  dominates (both drawn_pair (fun _ => W k)) (both (W k) (fun _ => drawn_pair))
    (@sampled n k ((v, b) :: others)) (sampled k ((w, b') :: others)).
Proof.
move=> v_w b_in b'_in others_in le_n c c_ge0; have w_v : w != v by rewrite eq_sym.
pose rest u := published (chances_in others u).
have in_cells u := chances_in_le u others_in.
have size_cells u := leq_trans (size_chances_in others u) le_n.
have rest_ge0 u : nonnegative (rest u) by apply: published_ge0.
have others_of x : x = v \/ x = w -> forall (q : R) t,
    \prod_(u | (u != v) && (u != w)) published (chances_in ((x, q) :: others) u) (t u)
    = \prod_(u | (u != v) && (u != w)) rest u (t u).
  move=> x_vw q t; apply: eq_bigr => u /andP[u_v u_w]; rewrite /chances_in /=.
  by case: x_vw => ->; rewrite eq_sym ?(negbTE u_v) ?(negbTE u_w).
pose in_v := published (b :: chances_in others v); pose in_w := published (b' :: chances_in others w).
have law_v : sampled k ((v, b) :: others)
    =1 push (fun oo => beside rest (fix_two v w oo)) (both in_v (fun _ => rest w)).
  move=> t; rewrite push_two // sampled_cells (bigD1 v) // (bigD1 w) //= others_of; last by left.
  by rewrite /chances_in /= eqxx (negbTE v_w).
have law_w : sampled k ((w, b') :: others)
    =1 push (fun oo => beside rest (fix_two v w oo)) (both (rest v) (fun _ => in_w)).
  move=> t; rewrite push_two // sampled_cells (bigD1 v) // (bigD1 w) //= others_of; last by right.
  by rewrite /chances_in /= eqxx (negbTE w_v).
have kernel_rest := kernel_beside rest_ge0 (fun u => published_1 _) (@fix_two _ v w).
apply: (le_trans (image_le c kernel_rest law_v law_w)); move: c c_ge0.
have pair_ge0 : nonnegative drawn_pair by apply: mixed_ge0; rewrite ?p_01 //; apply: waiting_ge0.
apply: two_steps => //; try exact: waiting_ge0.
- by apply: published_ge0; rewrite /= b_in in_cells.
- by move=> _; apply: published_ge0; rewrite /= b'_in in_cells.
- by move=> c c_ge0; case: (drawn_count c_ge0 b_in (in_cells v) (size_cells v)).
by move=> _ c c_ge0; case: (drawn_count c_ge0 b'_in (in_cells w) (size_cells w)).
Qed.

(* The delta formulas, at c = e^epsilon. *)
Corollary theorem_S_delta c : 0 <= c ->
  hockey c drawn_pair (W k) = p * hockey (1 + (c - 1) / p) (W k.-1) (W k) /\
  hockey c (W k) drawn_pair = Num.max 0 (1 - c * (1 - p)) * hockey (c * p / (1 - c * (1 - p))) (W k) (W k.-1).
Proof.
case/andP: p_in => p_gt0 _ c_ge0; split; first exact: mixture_left.
exact: mixture_right (ltW p_gt0) c_ge0 (waiting_ge0 _) (waiting_ge0 _).
Qed.

(* A cell of the table. *)
Lemma sampled_cell v population o :
  push (fun (t : {ffun V -> option 'I_n.+2}) o => (t v == o)%:R) (@sampled n k population) o
  = published (chances_in population v) o.
Proof.
rewrite push_record_law; pose h u x : R := if u == v then release R k x o else 1.
transitivity (\prod_u mean_count (chances_in population u) (h u)).
  rewrite -cells_independent; apply: eq_record_mean => records.
  by rewrite (bigD1 v) //= /h eqxx ffunE big1 ?mulr1 // => u /negbTE ->.
by rewrite (bigD1 v) //= /h eqxx big1 ?mulr1 // => u /negbTE ->; apply: mean_const.
Qed.

(* Theorem S, that it is exact: at every c >= 1, in each order, some m others in the target's cell, everybody being
   drawn with chance p, reach the pair's divergence. *)
Theorem theorem_S_reached c v : 1 <= c -> let law m := @sampled n k (nseq m (v, p)) in
  (exists2 m, (m <= n)%N & hockey c (law m.+1) (law m) = hockey c drawn_pair (W k)) /\
  (exists2 m, (m <= n)%N & hockey c (law m) (law m.+1) = hockey c (W k) drawn_pair).
Proof.
move=> c_ge1 law; have [p_gt0 p_le1] := andP p_in; have c_gt0 : 0 < c by apply: lt_le_trans c_ge1.
have all_p m : all (fun uq : V * R => 0 <= uq.2 <= p) (nseq m (v, p)) by rewrite all_nseq /= lexx (ltW p_gt0) orbT.
have in_p m : all (fun q => 0 <= q <= p) (nseq m p) by rewrite all_nseq /= lexx (ltW p_gt0) orbT.
have p_in_p : 0 <= p <= p by rewrite lexx (ltW p_gt0).
have size_le m : (m <= n)%N -> (size (nseq m (v, p)) <= n)%N by rewrite size_nseq.
have [left_form right_form] := theorem_S_delta (ltW c_gt0).
have cell m : published (nseq m p) =1 push (fun (t : {ffun V -> option 'I_n.+2}) o => (t v == o)%:R) (law m).
  move=> o; rewrite sampled_cell; congr (seen _ _ _).
  by elim: m => //= m IH; rewrite /chances_in /= eqxx /= -/(chances_in _ _) -IH.
have cell_le m m' : hockey c (published (nseq m p)) (published (nseq m' p)) <= hockey c (law m) (law m').
  by apply: (image_le c (kernel_map R (fun t : {ffun V -> option 'I_n.+2} => t v))).
pose more m := seen (@release R n k \o succn) (nseq m p).
have more_ge0 m : nonnegative (more m).
  by move=> o; apply: mean_ge0 => [|tosses]; rewrite ?ler0n // in_01.
have eq_more m : published (nseq m.+1 p) =1 mixed p (more m) (published (nseq m p)) by [].
have same m : published (nseq m p) =1 published (nseq m p) by [].
split.
  have d_gt0 : 0 < 1 + (c - 1) / p.
    by rewrite (lt_le_trans ltr01) // ler_addl mulr_ge0 ?subr_ge0 // invr_ge0 ltW.
  have [[m le_m reached] _] := theorem_A_reached n d_gt0 k_gt0 p_01; exists m => //; apply: le_anti.
  have [-> _] := theorem_S v (ltW c_gt0) p_in_p (all_p m) (size_le m le_m).
  by rewrite left_form -reached -mixture_left // -(eq_hockey c (eq_more m) (same m)) cell_le.
have [le_0|gt0] := lerP (1 - c * (1 - p)) 0.
  exists 0%N => //; apply: le_anti; have [_ ->] := theorem_S v (ltW c_gt0) p_in_p (all_p 0%N) (size_le 0%N isT).
  by rewrite right_form max_l // mul0r hockey_ge0.
have d_gt0 : 0 < c * p / (1 - c * (1 - p)) by rewrite divr_gt0 ?mulr_gt0.
have [_ [m le_m reached]] := theorem_A_reached n d_gt0 k_gt0 p_01; exists m => //; apply: le_anti.
have [_ ->] := theorem_S v (ltW c_gt0) p_in_p (all_p m) (size_le m le_m).
rewrite right_form -reached -(mixture_right (ltW p_gt0) (ltW c_gt0) (more_ge0 m) (published_ge0 (in_p m))).
by rewrite -(eq_hockey c (same m) (eq_more m)) cell_le.
Qed.

End Sample.
