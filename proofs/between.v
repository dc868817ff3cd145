(* Theorem C of docs/mathematics.md, section 5, for n people: where nobody's absence is assumed, a histogram whose small
   cells are suppressed hides which of two cells the target is in, with the profile of theorem A. *)

From mathcomp Require Import all_ssreflect all_algebra.
From pkdp Require Import hockey_stick vertex waiting_time histogram.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Between.

Variable R : realFieldType.
Implicit Types (c p : R) (ps : seq R).

(* The chance of x successes. *)
Definition chance ps (x : nat) : R := mean_count ps (fun s => (s == x)%:R).

Lemma chance_cons0 p ps : chance (p :: ps) 0 = (1 - p) * chance ps 0.
Proof. by rewrite /chance mean_count_cons /mean_count /= mean_const mulr0 add0r. Qed.

Lemma chance_cons p ps x : chance (p :: ps) x.+1 = p * chance ps x + (1 - p) * chance ps x.+1.
Proof. by []. Qed.

Lemma chance_ge0 ps x : all (fun q => 0 <= q <= 1) ps -> 0 <= chance ps x.
Proof. by move=> in_01; apply: mean_ge0 => // tosses; apply: ler0n. Qed.

(* A sequence is log-concave: its ratios do not increase. *)
Definition log_concave_seq (f : nat -> R) := forall i j, (i <= j)%N -> f i * f j.+1 <= f i.+1 * f j.

(* It stays so when one more coin is tossed. *)
Lemma log_concave_coin (f g : nat -> R) q : 0 <= q <= 1 -> (forall x, 0 <= f x) -> log_concave_seq f ->
  g 0%N = (1 - q) * f 0%N -> (forall x, g x.+1 = q * f x + (1 - q) * f x.+1) -> log_concave_seq g.
Proof.
case/andP=> p_ge0 p_le1 f_ge0 IH g0 gS i j; rewrite leq_eqVlt => /orP[/eqP ->|]; first by rewrite mulrC.
case: j => // j; rewrite ltnS => le_ij; have q_ge0 : 0 <= 1 - q by rewrite subr_ge0.
have scaled x y a b a' b' : 0 <= x -> 0 <= y -> a * b <= a' * b' -> x * a * (y * b) <= x * a' * (y * b') :> R.
  by move=> x_ge0 y_ge0 le_ab; rewrite mulrACA [leRHS]mulrACA ler_wpmul2l ?mulr_ge0.
case: i le_ij => [|i] le_ij; rewrite !(gS, g0); move: (1 - q) q_ge0 => r r_ge0.
  rewrite !mulrDl !mulrDr -[r * _ * (q * _)]mulrACA [r * q]mulrC [q * r * _]mulrACA.
  apply: ler_add; first by rewrite ler_addr !mulr_ge0.
  by apply: ler_paddl; rewrite ?mulr_ge0 //; apply: scaled => //; apply: IH.
rewrite !mulrDl !mulrDr addrACA; apply: ler_add; apply: ler_add.
- by apply: scaled => //; apply: IH => //; apply: ltnW.
- by rewrite mulrACA [r * q]mulrC mulrACA.
- rewrite mulrACA [leRHS]mulrACA [r * q]mulrC ler_wpmul2l ?mulr_ge0 //.
  apply: (le_trans (IH i j.+1 _)); first exact: leqW (ltnW le_ij).
  exact: IH.
by apply: scaled => //; apply: IH; apply: leqW.
Qed.

(* The law of the number of successes is log-concave. *)
Lemma log_concave ps : all (fun q => 0 <= q <= 1) ps -> log_concave_seq (chance ps).
Proof.
elim: ps => [|q ps IH] /=; first by move=> _ i j _; rewrite /chance /mean_count /= mulr0 mul0r.
case/andP=> q_01 in_01; apply: (log_concave_coin q_01 _ (IH in_01)) => [x||x].
- exact: chance_ge0.
- exact: chance_cons0.
exact: chance_cons.
Qed.

(* The mean is the sum over the numbers of successes. *)
Lemma mean_by_chance ps m (f : nat -> R) : (size ps < m)%N -> mean_count ps f = \sum_(x < m) chance ps x * f x.
Proof.
move=> lt_m; rewrite /chance /mean_count; under eq_bigr do rewrite -mean_mulr.
rewrite -mean_sum; apply: mean_sized => tosses size_t /=.
have lt_s : (successes tosses < m)%N by rewrite (leq_ltn_trans _ lt_m) // -size_t count_size.
rewrite (bigD1 (Ordinal lt_s)) //= eqxx mul1r big1 ?addr0 // => x.
by rewrite eq_sym -val_eqE /= => /negbTE ->; rewrite mul0r.
Qed.

(* The chance that one more is x. *)
Definition chance_more ps x : R := if x is x'.+1 then chance ps x' else 0.

Lemma mean_by_chance_more ps m (f : nat -> R) : (size ps < m)%N ->
  mean_count ps (f \o succn) = \sum_(x < m.+1) chance_more ps x * f x.
Proof. by move=> lt_m; rewrite big_ord_recl mul0r add0r (mean_by_chance _ lt_m). Qed.

(* What is not counted is a count too. *)
Lemma mean_others ps (f : nat -> R) : mean_count ps (fun s => f (size ps - s)%N) = mean_count [seq 1 - p | p <- ps] f.
Proof.
elim: ps f => [|p ps IH] f //=; rewrite !mean_count_cons subKr addrC -!IH; congr (_ * _ + _ * _).
apply: mean_sized => tosses size_t /=; rewrite subSn // -size_t; exact: count_size.
Qed.

(* One more or not: from some count on, one more looks likelier by more than c, and before it, it does not. *)
Lemma crossing c ps m : 0 <= c -> all (fun q => 0 <= q <= 1) ps -> exists t, forall x, (x < m)%N ->
  if (t <= x)%N then c * chance ps x <= chance_more ps x else chance_more ps x <= c * chance ps x.
Proof.
move=> c_ge0 in_01; pose likelier x := c * chance ps x < chance_more ps x.
have f_ge0 x := chance_ge0 x in_01.
have more_ge0 x : 0 <= chance_more ps x by case: x => [|x] //=; apply: f_ge0.
exists (find likelier (iota 0 m)) => x lt_x; case: leqP => [le_x|/(before_find 0%N)]; last first.
  by rewrite nth_iota // add0n => /negbT; rewrite -leNgt.
move: (leq_ltn_trans le_x lt_x); move t_def: (find _ _) => t lt_t.
have : likelier t.
  have := nth_find 0%N (_ : has likelier (iota 0 m)); rewrite t_def nth_iota //; apply.
  by rewrite has_find t_def size_iota.
rewrite t_def in le_x; rewrite /likelier leNgt => likely_t; apply/negP => unlikely_x.
have f_gt0 : 0 < chance ps x.
  rewrite lt_neqAle f_ge0 andbT eq_sym; apply: contraTN unlikely_x => /eqP ->.
  by rewrite mulr0 -leNgt more_ge0.
have : chance_more ps t * chance ps x <= chance_more ps x * chance ps t.
  case: t {t_def lt_t} le_x likely_t => [|t]; first by rewrite mul0r => *; apply: mulr_ge0.
  by case: x {lt_x unlikely_x f_gt0} => // x le_tx _; rewrite [leRHS]mulrC; apply: (log_concave in_01).
apply/negP; rewrite -ltNge; apply: (@le_lt_trans _ _ (c * chance ps x * chance ps t)).
  by rewrite ler_wpmul2r ?f_ge0 // ltW.
by rewrite mulrAC ltr_pmul2r.
Qed.

(* What is shown of a count, and an event of it. *)
Definition shown_law (O : finType) (shown : nat -> O) := seen (R := R) (fun x o => (shown x == o)%:R).

Lemma weight_shown (O : finType) (shown : nat -> O) ps (S : {set O}) :
  weight (shown_law shown ps) S = mean_count ps (fun x => (shown x \in S)%:R).
Proof.
rewrite /weight /shown_law /seen /mean_count -mean_sum; apply: eq_mean => tosses /=.
have [in_S|not_in] := boolP (shown (successes tosses) \in S).
  by rewrite (bigD1 (shown (successes tosses))) //= eqxx big1 ?addr0 // => o /andP[_]; rewrite eq_sym => /negbTE ->.
by apply: big1 => o in_S; rewrite (negbTE (contraNneq _ not_in)) // => ->.
Qed.

Variables (p : R) (n k : nat).
Hypotheses (k_gt0 : (0 < k)%N) (p_01 : 0 <= p <= 1).

Let worst c := both_orders c (@waiting R n p k.-1) (waiting p k).

(* A tail that says that the count is large, or the count of the others small, is no likelier than in theorem A. *)
Lemma tail_le c ps t : all (fun q => 1 - p <= q <= p) ps -> (size ps <= n)%N ->
  [|| (k <= t)%N, (t + k <= (size ps).+2)%N | t == 0%N] ->
  mean_count ps (fun s => (t <= s.+1)%N%:R) - c * mean_count ps (fun s => (t <= s)%N%:R) <= worst c.
Proof.
move=> in_p le_n; case/andP: p_01 => p_ge0 p_le1.
have in_0p : all (fun q => 0 <= q <= p) ps.
  by apply: sub_all in_p => q /andP[le_q ->]; rewrite (le_trans _ le_q) // subr_ge0.
have in_0p' : all (fun q => 0 <= q <= p) [seq 1 - q | q <- ps].
  rewrite all_map; apply: sub_all in_p => q /= /andP[le_q q_le].
  by rewrite subr_ge0 (le_trans q_le p_le1) /= ler_subl_addl -ler_subl_addr.
have event_le_worst (e : bool) qs (S : {set option 'I_n.+2}) : all (fun q => 0 <= q <= p) qs -> (size qs <= n)%N ->
    mean_count qs (fun s => (thresholded n k (s + e) \in S)%:R)
    - c * mean_count qs (fun s => (thresholded n k (s + ~~ e) \in S)%:R) <= worst c.
  move=> in_qs le_qs; have [A A'] := theorem_A c k_gt0 p_01 in_qs le_qs.
  rewrite -!(weight_shown (fun s => thresholded n k (s + _))) /worst le_maxr.
  have one : shown_law (fun s => thresholded n k (s + true)) qs =1 seen (@release R n k \o succn) qs.
    by move=> y; apply: eq_mean => tosses /=; rewrite addn1.
  have none : shown_law (fun s => thresholded n k (s + false)) qs =1 seen (@release R n k) qs.
    by move=> y; apply: eq_mean => tosses /=; rewrite addn0.
  case: e => /=; apply/orP; [left | right]; apply: (le_trans (event_le_hockey c _ _ S)).
    by rewrite (eq_hockey c one none).
  by rewrite (eq_hockey c none one).
pose above t' := [set o : option 'I_n.+2 | if o is Some i then (t' <= i)%N else false].
have shown_in t' x : (k <= t')%N -> (x <= n.+1)%N -> (thresholded n k x \in above t') = (t' <= x)%N.
  move=> le_kt le_x; rewrite /thresholded; case: leqP => [le_kx|lt_xk]; rewrite inE; first by rewrite inordK.
  by apply/esym/negbTE; rewrite -ltnNge (leq_trans lt_xk).
case/or3P => [le_kt|le_tk|/eqP ->]; last first.
- have := event_le_worst true _ setT in_0p le_n.
  by congr (_ - c * _ <= _); apply: mean_sized => tosses _ /=; rewrite inE.
- have le_k : (k <= (size ps).+2 - t)%N by rewrite leq_subRL ?(leq_trans _ le_tk) ?leq_addr.
  have := event_le_worst false _ (~: above ((size ps).+2 - t)%N) in_0p' _; rewrite size_map => /(_ le_n).
  rewrite -!mean_others; congr (_ - c * _ <= _); apply: mean_sized => tosses size_t;
    (have le_s : (successes tosses <= size ps)%N by rewrite -size_t count_size);
    rewrite /= inE shown_in ?addn0 ?addn1 //.
  + by rewrite -ltnNge ltn_subRL addnBA // ltnS leq_subLR addnS -addSn leq_add2r.
  + by rewrite (leq_trans (leq_subr _ _)) // (leq_trans le_n).
  + by rewrite -ltnNge ltn_subRL addnS ltnS ltnS addnBA // leq_subLR leq_add2r.
  by rewrite ltnS (leq_trans (leq_subr _ _)).
have := event_le_worst true _ (above t) in_0p le_n.
congr (_ - c * _ <= _); apply: mean_sized => tosses size_t /=; rewrite shown_in ?addn1 ?addn0 //.
  by rewrite ltnS (leq_trans (count_size _ _)) // size_t.
by rewrite (leq_trans (count_size _ _)) // size_t ltnW.
Qed.

(* Of x, where so many in all are in one of two cells, nothing is seen when both cells are small. *)
Let hidden (ps : seq R) x := (x < k)%N && ((size ps).+1 < x + k)%N.

Lemma one_order c ps (O : finType) (shown : nat -> O) : 0 <= c -> all (fun q => 1 - p <= q <= p) ps ->
  (size ps <= n)%N -> (forall x y, hidden ps x -> hidden ps y -> shown x = shown y) ->
  hockey c (shown_law (shown \o succn) ps) (shown_law shown ps) <= worst c.
Proof.
move=> c_ge0 in_p le_n merged; have in_01 : all (fun q => 0 <= q <= 1) ps.
  case/andP: p_01 => _ p_le1; apply: sub_all in_p => q /andP[le_q q_le].
  by rewrite (le_trans q_le p_le1) (le_trans _ le_q) // subr_ge0.
have [_ [S ->]] := hockey_is_largest c (shown_law (shown \o succn) ps) (shown_law shown ps).
pose s x := shown x \in S; pose g x := chance_more ps x - c * chance ps x.
have summed (f : nat -> bool) : mean_count ps (fun x => (f x.+1)%:R) - c * mean_count ps (fun x => (f x)%:R)
    = \sum_(x < (size ps).+2) g x * (f x)%:R.
  rewrite (mean_by_chance_more (fun x => (f x)%:R) (ltnSn _)) (mean_by_chance _ (ltnW (ltnSn _))) mulr_sumr -sumrB.
  by apply: eq_bigr => x _; rewrite mulrA -mulrBl.
rewrite !weight_shown (summed s); have [t sign] := crossing (size ps).+2 c_ge0 in_01.
suff [t' at_end below] : exists2 t', [|| (k <= t')%N, (t' + k <= (size ps).+2)%N | t' == 0%N] &
    forall x, if (t <= x)%N then s x ==> (t' <= x)%N else (t' <= x)%N ==> s x.
  apply: le_trans (tail_le c in_p le_n at_end); rewrite (summed (leq t')); apply: ler_sum => x _.
  have := sign x (ltn_ord x); have := below x; rewrite -/(s x); case: ifP => _ imply le_g.
    have g_ge0 : 0 <= g x by rewrite subr_ge0.
    move: imply; case: (s x); case: (t' <= x)%N => //= _; rewrite ?mulr1 ?mulr0 //.
  have g_le0 : g x <= 0 by rewrite subr_le0.
  move: imply; case: (s x); case: (t' <= x)%N => //= _; rewrite ?mulr1 ?mulr0 //.
have [k_t|t_k] := leqP k t.
  by exists t; rewrite ?k_t // => x; case: leqP => _; rewrite /= ?implybT.
have [tk_le|lt_tk] := leqP (t + k) (size ps).+2.
  by exists t; rewrite ?tk_le ?orbT // => x; case: leqP => _; rewrite /= ?implybT.
have hid_t : hidden ps t by rewrite /hidden t_k ltnW.
have [s_t|s_t] := boolP (s t); last first.
  exists k; rewrite ?leqnn // => x; case: (leqP t x) => le_t; case: (leqP k x) => le_k; rewrite ?implybT //=.
    have hid_x : hidden ps x by rewrite /hidden le_k /= (leq_trans (ltnW lt_tk)) // leq_add2r.
    by rewrite {1}/s (merged _ _ hid_x hid_t) -/(s t) (negbTE s_t).
  by have := leq_ltn_trans le_k le_t; rewrite ltnNge ltnW.
exists ((size ps).+2 - k)%N.
  have [le|/ltnW le] := leqP k (size ps).+2; first by rewrite subnK ?leqnn ?orbT.
  by rewrite subn_eq0 le !orbT.
move=> x; case: (leqP t x) => [le_t|lt_t].
  by rewrite leq_subLR addnC (leq_trans (ltnW lt_tk)) ?implybT // leq_add2r.
apply/implyP => le_x; rewrite /s (merged x t) //.
by rewrite /hidden (ltn_trans lt_t t_k) /= addnC -leq_subLR.
Qed.

(* In both orders: the other one is that of the other cell. *)
Lemma two_cells c ps (O : finType) (shown : nat -> O) : 0 <= c -> all (fun q => 1 - p <= q <= p) ps ->
  (size ps <= n)%N -> (forall x y, hidden ps x -> hidden ps y -> shown x = shown y) ->
  both_orders c (shown_law (shown \o succn) ps) (shown_law shown ps) <= worst c.
Proof.
move=> c_ge0 in_p le_n merged; rewrite /both_orders le_maxl one_order //=.
pose ps' := [seq 1 - q | q <- ps]; pose shown' x := shown ((size ps).+1 - x)%N.
have in_p' : all (fun q => 1 - p <= q <= p) ps'.
  rewrite all_map; apply: sub_all in_p => q /= /andP[le_q q_le].
  by rewrite ler_add2l ler_opp2 q_le ler_subl_addl -ler_subl_addr.
have mirrored (f g : nat -> O) : (forall s, (s <= size ps)%N -> f s = g (size ps - s)%N) ->
    shown_law f ps =1 shown_law g ps'.
  move=> eq_fg y; rewrite /shown_law /seen -(mean_others ps (fun z => (g z == y)%:R)); apply: mean_sized => t size_t.
  by rewrite /= eq_fg // -size_t count_size.
have eq_one : shown_law shown ps =1 shown_law (shown' \o succn) ps'.
  by apply: mirrored => s le_s; rewrite /shown' /= subSS subKn.
have eq_none : shown_law (shown \o succn) ps =1 shown_law shown' ps'.
  by apply: mirrored => s le_s; rewrite /shown' /= subSn ?leq_subr // subKn.
rewrite (eq_hockey c eq_one eq_none); apply: one_order => //; first by rewrite size_map.
move=> x y; have turned z : hidden ps' z -> hidden ps ((size ps).+1 - z)%N.
  rewrite /hidden size_map => /andP[lt_zk lt_zk']; apply/andP; split.
    have [le_z|/ltnW] := leqP z (size ps).+1; last by rewrite -subn_eq0 => /eqP ->.
    by rewrite -(ltn_add2r z) subnK // addnC.
  have [le_z|lt_z] := leqP z (size ps).+1; last by rewrite (leq_trans (ltn_trans lt_z lt_zk)) // leq_addl.
  by rewrite -[X in (X < _)%N](subnK le_z) ltn_add2l.
by move=> /turned hid_x /turned hid_y; apply: merged.
Qed.

(* A law under which, told that the record is v or w, neither is likelier than p. *)
Definition told_between_cells (V : finType) (v w : V) (D : option V -> R) :=
  [/\ forall r, 0 <= D r, \sum_r D r = 1,
      D (Some v) <= p * (D (Some v) + D (Some w)) & D (Some w) <= p * (D (Some v) + D (Some w))].

(* What is published, with the target in cell v: anything that follows from the table and from who is present. *)
Definition beside_presence (V Y : finType) (publish : {ffun V -> option 'I_n.+2} -> seq bool -> Y) v :=
  record_law (R := R) (fun records =>
    publish (table n k (Some v :: records)) [seq isSome r | r <- Some v :: records]).

(* Theorem C: for at most n people, each of whom, told that the record is v or w, is in neither with a chance above p,
   v or w as the target's cell is hidden as theorem A hides a count. *)
Theorem theorem_C c (V Y : finType) (publish : {ffun V -> option 'I_n.+2} -> seq bool -> Y) (v w : V) Ds :
  0 <= c -> 1 - p <= p -> v != w -> (size Ds <= n)%N ->
  (forall i, (i < size Ds)%N -> told_between_cells v w (nth (fun _ => 0) Ds i)) ->
  both_orders c (beside_presence publish v Ds) (beside_presence publish w Ds)
  <= both_orders c (@waiting R n p k.-1) (waiting p k).
Proof.
move=> c_ge0 le_half v_w le_n told; rewrite -/(worst c).
have v_w' : Some v != Some w by [].
have between i : (i < size Ds)%N -> told_between (Some v) (Some w) (1 - p) p (nth (fun _ => 0) Ds i).
  move=> /told[D_ge0 D_1 D_v D_w]; split; rewrite // D_v andbT mulrBl mul1r ler_subl_addr.
  by rewrite ler_add2l.
have ends slots : size slots = size Ds -> all (slot_allowed (Some v) (Some w) (1 - p) p) slots ->
    both_orders c (beside_presence publish v (map (slot_law (Some v) (Some w)) slots))
                  (beside_presence publish w (map (slot_law (Some v) (Some w)) slots)) <= worst c.
  move=> size_slots ok; set ps := chances slots.
  have le_ps : (size ps <= n)%N by rewrite (leq_trans (size_chances _)) // size_slots.
  pose present := true :: [seq (if slot is inl known then isSome known else true) | slot <- slots].
  have who r tosses : isSome r -> [seq isSome r | r <- r :: filled (Some v) (Some w) slots tosses] = present.
    rewrite /= => ->; congr (_ :: _); elim: slots tosses {ok size_slots ps le_ps present} => [|slot slots IH] tosses //.
    case: slot => [known|q] /=.
      by rewrite IH.
    by rewrite IH; case: ifP.
  pose shown x := publish [ffun u => thresholded n k (if u == v then x else if u == w then ((size ps).+1 - x)%N
    else count (pred1 (inl (Some u))) slots)] present.
  have none u : (u == v) || (u == w) -> count (pred1 (inl (Some u))) slots = 0%N.
    by move=> u_vw; apply: (count_allowed ok).
  have w_v : w != v by rewrite eq_sym.
  have law_v : beside_presence publish v (map (slot_law (Some v) (Some w)) slots) =1 shown_law (shown \o succn) ps.
    move=> y; rewrite /beside_presence /record_law record_mean_slots //; apply: mean_sized => tosses size_t.
    have le_s : (successes tosses <= size tosses)%N by apply: count_size.
    rewrite who // /shown /=; congr (publish _ _ == _)%:R; apply/ffunP => u; rewrite !ffunE /= count_filled //.
    congr (thresholded _ _ _); have [->|u_v] := eqVneq u v.
      by rewrite none ?eqxx // -[Some v == Some w]/(v == w) (negbTE v_w) mul1n addn0.
    rewrite -[Some v == _]/(v == u) eq_sym (negbTE u_v) -![Some u == _]/(u == _) (negbTE u_v).
    have [->|u_w] := eqVneq u w; first by rewrite none ?eqxx ?orbT // mul1n size_t subSS.
    by rewrite !addn0.
  have law_w : beside_presence publish w (map (slot_law (Some v) (Some w)) slots) =1 shown_law shown ps.
    move=> y; rewrite /beside_presence /record_law record_mean_slots //; apply: mean_sized => tosses size_t.
    have le_s : (successes tosses <= size tosses)%N by apply: count_size.
    rewrite who // /shown /=; congr (publish _ _ == _)%:R; apply/ffunP => u; rewrite !ffunE /= count_filled //.
    congr (thresholded _ _ _); have [->|u_v] := eqVneq u v.
      rewrite none ?eqxx // -[Some w == Some v]/(w == v) -[Some v == Some w]/(v == w).
      by rewrite (negbTE w_v) (negbTE v_w) mul1n addn0.
    rewrite -[Some w == _]/(w == u) eq_sym -[Some u == Some v]/(u == v) (negbTE u_v) -[Some u == Some w]/(u == w).
    have [->|u_w] := eqVneq u w; first by rewrite none ?eqxx ?orbT // mul1n -size_t subSn.
    by rewrite !addn0.
  rewrite /both_orders (eq_hockey c law_v law_w) (eq_hockey c law_w law_v).
  apply: two_cells => //; first exact: chances_allowed ok.
  move=> x y /andP[lt_x lt_x'] /andP[lt_y lt_y']; rewrite /shown; congr (publish _ _); apply/ffunP => u; rewrite !ffunE.
  have small z : (z < k)%N -> thresholded n k z = None by rewrite /thresholded ltnNge => /negbTE ->.
  have rest z : ((size ps).+1 < z + k)%N -> ((size ps).+1 - z < k)%N.
    have [le_z|/ltnW le_z _] := leqP z (size ps).+1; first by rewrite ltn_subLR.
    by have /eqP -> : ((size ps).+1 - z == 0)%N by rewrite subn_eq0.
  by case: (u == v); [rewrite !small | case: (u == w) => //; rewrite !small ?rest].
rewrite /both_orders le_maxl; apply/andP; split; apply: (reveal v_w' le_half between) => slots size_slots ok;
  by have := ends _ size_slots ok; rewrite /both_orders le_maxl => /andP[].
Qed.

End Between.
