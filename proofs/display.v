(* Theorem R of docs/mathematics.md, rules of display, for n people: where all counts below some number look alike,
   rounded, in bands or suppressed, a table hides whether the target is in a cell or absent as suppression below that
   number does. *)

From mathcomp Require Import all_ssreflect all_algebra.
From pkdp Require Import hockey_stick vertex waiting_time histogram.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Display.

Variables (R : realFieldType) (V : finType).
Implicit Types (c p : R) (v u : V) (Ds : seq (option V -> R)).

(* What is shown of some cells, where `fixed` says it, beside all others, which show something independent of it. *)
Section Beside.

Variables (O : finType) (rest : V -> O -> R).
Hypotheses (rest_ge0 : forall u o, 0 <= rest u o) (rest_1 : forall u, \sum_o rest u o = 1).

Definition beside (fixed : V -> option O) (t : {ffun V -> O}) : R :=
  \prod_u (if fixed u is Some o then (o == t u)%:R else rest u (t u)).

Lemma kernel_beside (I : finType) (fixed : I -> V -> option O) : kernel (fun i => beside (fixed i)).
Proof.
move=> i; split=> [t|].
  by apply: prodr_ge0 => u _; case: (fixed i u) => [o|]; rewrite ?ler0n.
rewrite -(bigA_distr_bigA (fun u o' => if fixed i u is Some o then (o == o')%:R else rest u o')) /= big1 // => u _.
case: (fixed i u) => [o|//]; by rewrite (bigD1 o) //= eqxx big1 ?addr0 // => o'; rewrite eq_sym => /negbTE ->.
Qed.

Definition fix_one v (o : O) u := if u == v then Some o else None.

Lemma push_one v (A : O -> R) t :
  push (fun o => beside (fix_one v o)) A t = A (t v) * \prod_(u | u != v) rest u (t u).
Proof.
have eq_beside o : beside (fix_one v o) t = (o == t v)%:R * \prod_(u | u != v) rest u (t u).
  rewrite /beside (bigD1 v) //= /fix_one eqxx; congr (_ * _).
  by apply: eq_bigr => u /negbTE ->.
rewrite /push (bigD1 (t v)) //= eq_beside eqxx mul1r [X in _ + X]big1 ?addr0 // => o /negbTE differs.
by rewrite eq_beside differs mul0r mulr0.
Qed.

End Beside.

(* A rule shows of every cell something whose law depends on the cell's count. *)
Variables (Y : finType) (rule : nat -> Y -> R).
Hypotheses (rule_ge0 : forall x y, 0 <= rule x y) (rule_1 : forall x, \sum_y rule x y = 1).

(* The law of the table that is shown when the target's record is r. *)
Definition displayed r Ds (shown : {ffun V -> Y}) : R :=
  record_mean Ds (fun records => \prod_u rule (count_mem (Some u) (r :: records)) (shown u)).

(* Once all others are revealed, the other cells say nothing, and the target's shows a count of coins. *)
Lemma displayed_slots p slots v (target : bool) : all (slot_allowed (Some v) None 0 p) slots ->
  displayed (if target then Some v else None) (map (slot_law (Some v) None) slots)
  =1 push (fun y => beside (fun u => rule (count (pred1 (inl (Some u))) slots)) (fix_one v y))
          (seen (fun x => rule (target + x)%N) (chances slots)).
Proof.
move=> ok t; rewrite push_one /displayed record_mean_slots // /seen /mean_count -mean_mulr.
apply: mean_sized => tosses size_t /=; rewrite (bigD1 v) //=; congr (_ * _).
  by rewrite count_filled // eqxx mul1n addn0 (count_allowed ok) ?eqxx // add0n; case: target; rewrite ?eqxx.
apply: eq_bigr => u u_v; have v_u : (Some v == Some u) = false by rewrite -[LHS]/(v == u) eq_sym (negbTE u_v).
rewrite count_filled // -[Some u == Some v]/(u == v) (negbTE u_v) !addn0.
by case: target; rewrite ?v_u.
Qed.

(* A table hides whether the target is in a cell or absent as one count is hidden: for at most n people, each of whom,
   told that the record is v or absent, is in v with a chance of at most p, what bounds the divergence of what is shown
   of a count of at most n coins with chances of at most p bounds that of the table. Here for either order. *)
Theorem cell_as_count c p n v (target : bool) (B : R) Ds : 0 <= p -> (size Ds <= n)%N ->
  (forall i, (i < size Ds)%N -> told_at_most v p (nth (fun _ => 0) Ds i)) ->
  (forall ps, all (fun q => 0 <= q <= p) ps -> (size ps <= n)%N ->
    hockey c (seen (fun x => rule (target + x)%N) ps) (seen (fun x => rule (~~ target + x)%N) ps) <= B) ->
  hockey c (displayed (if target then Some v else None) Ds) (displayed (if ~~ target then Some v else None) Ds) <= B.
Proof.
move=> p_ge0 le_n told counts.
have between i : (i < size Ds)%N -> told_between (Some v) None 0 p (nth (fun _ => 0) Ds i).
  by move=> /told[D_ge0 D_1 D_v]; split; rewrite // mul0r D_ge0.
apply: (reveal_random (a := Some v) (b := None) _ p_ge0 between) => // slots size_slots ok.
have known := kernel_beside (rest := fun u => rule (count (pred1 (inl (Some u))) slots))
  (fun u => rule_ge0 _) (fun u => rule_1 _) (@fix_one Y v).
apply: (le_trans (image_le c known (displayed_slots target ok) (displayed_slots (~~ target) ok))).
apply: counts; first exact: chances_allowed ok.
by rewrite (leq_trans _ le_n) // -size_slots size_chances.
Qed.

(* All counts below `first` look alike. *)
Variable first : nat.
Hypothesis alike : forall x, (x < first)%N -> rule x =1 rule 0%N.

(* Theorem R: for at most n people, each of whom, told that the record is v or absent, is in v with a chance of at most
   p, the pair of theorem A for suppression below `first` dominates the table shown, in both orders. *)
Theorem theorem_R c p n v Ds : (0 < first)%N -> 0 <= p <= 1 -> (size Ds <= n)%N ->
  (forall i, (i < size Ds)%N -> told_at_most v p (nth (fun _ => 0) Ds i)) ->
  hockey c (displayed (Some v) Ds) (displayed None Ds) <= hockey c (@waiting R n p first.-1) (waiting p first) /\
  hockey c (displayed None Ds) (displayed (Some v) Ds) <= hockey c (@waiting R n p first) (waiting p first.-1).
Proof.
move=> first_gt0 p_01 le_n told; have p_ge0 : 0 <= p by case/andP: p_01.
pose after (o : option 'I_n.+2) := rule (if o is Some x then x : nat else 0%N).
have kernel_after : kernel after by move=> o; split=> [y|]; rewrite ?rule_1 /after ?rule_1.
have of_suppressed (target : bool) ps : (size ps <= n)%N ->
    seen (fun x => rule (target + x)%N) ps
    =1 push after (seen (fun x => @release R n first (target + x)%N) ps).
  move=> le_ps y; rewrite /push /seen /mean_count; under eq_bigr do rewrite -mean_mulr.
  rewrite -mean_sum; apply: mean_sized => tosses size_t /=; pose x := (target + successes tosses)%N.
  have lt_x : (x < n.+2)%N.
    by rewrite ltnS (leq_add (leq_b1 target)) // (leq_trans (count_size _ _)) // size_t.
  rewrite (bigD1 (thresholded n first x)) //= /release eqxx mul1r big1 ?addr0 => [|o]; last first.
    by rewrite eq_sym => /negbTE ->; rewrite mul0r.
  by rewrite /after /thresholded; case: leqP => [_|/alike ->] //; rewrite inordK.
split; [apply: (@cell_as_count c p n v true) | apply: (@cell_as_count c p n v false)] => // ps in_0p le_ps;
  have [A A'] := theorem_A c first_gt0 p_01 in_0p le_ps; [apply: le_trans A | apply: le_trans A'].
  exact: (image_le c kernel_after (of_suppressed true ps le_ps) (of_suppressed false ps le_ps)).
exact: (image_le c kernel_after (of_suppressed false ps le_ps) (of_suppressed true ps le_ps)).
Qed.

End Display.

Section Cutoffs.

Variable R : realFieldType.
Implicit Types (c p : R).

(* What a map makes of what is shown of a count. *)
Lemma seen_map (T U : finType) (shown : nat -> T) (shown' : nat -> U) (f : T -> U) (ps : seq R) m :
  (size ps <= m)%N -> (forall x, (x <= m)%N -> shown' x = f (shown x)) ->
  seen (fun x y => (shown' x == y)%:R) ps =1 push (fun x y => (f x == y)%:R) (seen (fun x y => (shown x == y)%:R) ps).
Proof.
move=> le_m eq_f y; rewrite push_map; apply: mean_sized => tosses size_t /=.
by rewrite eq_f // (leq_trans (count_size _ _)) // size_t.
Qed.

(* The first cutoff is worst: with a larger threshold the pair of theorem A is no further apart. *)
Theorem larger_threshold c p n k k' : 0 < c -> 0 <= p <= 1 -> (0 < k <= k')%N ->
  hockey c (@waiting R n p k'.-1) (waiting p k') <= hockey c (@waiting R n p k.-1) (waiting p k) /\
  hockey c (@waiting R n p k') (waiting p k'.-1) <= hockey c (@waiting R n p k) (waiting p k.-1).
Proof.
move=> c_gt0 p_01 /andP[k_gt0 le_kk']; have k'_gt0 : (0 < k')%N by apply: leq_trans le_kk'.
have in_0p m : all (fun q => 0 <= q <= p) (nseq m p) by rewrite all_nseq lexx; case/andP: p_01 => -> _; rewrite orbT.
pose again (o : option 'I_n.+2) := if o is Some x then thresholded n k' x else None.
have suppressed x : (x <= n.+1)%N -> thresholded n k' x = again (thresholded n k x).
  move=> le_x; rewrite /again /thresholded; case: leqP => le_k'.
    by rewrite (leq_trans le_kk') // inordK // le_k'.
  by case: ifP => // _; rewrite inordK // ifN // -ltnNge.
have later m : (m <= n)%N ->
    seen (@release R n k') (nseq m p) =1 push (fun x y => (again x == y)%:R) (seen (@release R n k) (nseq m p)) /\
    seen (@release R n k' \o succn) (nseq m p)
      =1 push (fun x y => (again x == y)%:R) (seen (@release R n k \o succn) (nseq m p)).
  move=> le_m; split.
    apply: (@seen_map _ _ (thresholded n k) (thresholded n k') again _ n); rewrite ?size_nseq // => x le_x.
    by apply: suppressed; apply: leqW.
  apply: (@seen_map _ _ (thresholded n k \o succn) (thresholded n k' \o succn) again _ n); rewrite ?size_nseq //.
  by move=> x le_x; apply: suppressed.
have [[m le_m <-] [m' le_m' <-]] := theorem_A_reached n c_gt0 k'_gt0 p_01.
have [absent present] := later m le_m; have [absent' present'] := later m' le_m'.
have size_le j : (j <= n)%N -> (size (nseq j p) <= n)%N by rewrite size_nseq.
have [A _] := theorem_A c k_gt0 p_01 (in_0p m) (size_le m le_m).
have [_ A'] := theorem_A c k_gt0 p_01 (in_0p m') (size_le m' le_m').
by split; [apply: le_trans A | apply: le_trans A']; apply: (image_le c (kernel_map R again)).
Qed.

(* Theorem R, that it is exact: where what is shown does not decrease with the count, and `first` is the first count
   that is shown unlike the one before it, some number of people reaches the pair's divergence, in each order. *)
Theorem theorem_R_reached c p n (disp : unit) (Y : finPOrderType disp) (shown : nat -> Y) first :
  0 < c -> 0 <= p <= 1 -> (0 < first)%N -> {homo shown : x y / (x <= y)%N >-> (x <= y)%O} ->
  shown first != shown first.-1 -> (forall x, (x < first)%N -> shown x = shown 0%N) ->
  let law (target : nat) m := seen (fun x y => (shown (x + target)%N == y)%:R) (nseq m p) in
  (exists2 m, (m <= n)%N & hockey c (@waiting R n p first.-1) (waiting p first) = hockey c (law 1%N m) (law 0%N m)) /\
  (exists2 m, (m <= n)%N & hockey c (@waiting R n p first) (waiting p first.-1) = hockey c (law 0%N m) (law 1%N m)).
Proof.
move=> c_gt0 p_01 first_gt0 non_decreasing differs alike law.
have other x : (first <= x)%N -> shown x != shown 0%N.
  move=> le_x; apply: contraNneq differs => eq_x; apply/eqP/le_anti.
  rewrite [_ first.-1]alike ?prednK // -{1}eq_x !non_decreasing //.
pose large x : option 'I_n.+2 := if (first <= x)%N then Some ord0 else None.
pose told x (o : option 'I_n.+2) : R := (large x == o)%:R.
have told_1 x : \sum_o told x o = 1.
  by rewrite (bigD1 (large x)) //= /told eqxx big1 ?addr0 // => o; rewrite eq_sym => /negbTE ->.
have told_first x : \sum_(o in [set~ None]) told x o = (first <= x)%N%:R.
  rewrite /told /large; case: leqP => _; last by apply: big1 => o; rewrite !inE eq_sym => /negbTE ->.
  rewrite (bigD1 (Some ord0)) ?inE //= ?eqxx big1 ?addr0 // => o /andP[_].
  by rewrite eq_sym => /negbTE ->.
pose f y : option 'I_n.+2 := if y == shown 0%N then None else Some ord0.
have eq_large x : large x = f (shown x).
  rewrite /large /f; case: leqP => [le_x|lt_x]; last by rewrite alike ?eqxx.
  by rewrite (negbTE (other x le_x)).
have mapped target m : seen (fun x => told (x + target)%N) (nseq m p) =1 push (fun x y => (f x == y)%:R) (law target m).
  by apply: (@seen_map _ _ (fun x => shown (x + target)%N) _ f _ m); rewrite ?size_nseq // => x _; apply: eq_large.
have eq_told (target : bool) m :
    seen (fun x => told (x + target)%N) (nseq m p) =1 seen (if target then told \o succn else told) (nseq m p).
  by move=> y; apply: eq_mean => tosses /=; case: target; rewrite ?addn0 ?addn1.
have le_law (a b : bool) m : hockey c (seen (if a then told \o succn else told) (nseq m p))
    (seen (if b then told \o succn else told) (nseq m p)) <= hockey c (law a m) (law b m).
  by apply: (image_le c (kernel_map R f)) => y; rewrite -eq_told mapped.
pose g (o : option 'I_n.+2) := shown (if o is Some x then x : nat else 0%N).
have eq_shown x : (x <= n.+1)%N -> shown x = g (thresholded n first x).
  rewrite /g /thresholded => le_x; case: leqP => [_|/alike //]; by rewrite inordK.
have le_A (target : bool) m : (m <= n)%N -> hockey c (law target m) (law (~~ target) m)
    <= hockey c (@waiting R n p (first - target)) (waiting p (first - ~~ target)).
  move=> le_m; have in_0p : all (fun q => 0 <= q <= p) (nseq m p).
    by rewrite all_nseq lexx; case/andP: p_01 => -> _; rewrite orbT.
  have size_m : (size (nseq m p) <= n)%N by rewrite size_nseq.
  have by_release (e : bool) : law e m =1 push (fun x y => (g x == y)%:R)
      (seen (if e then @release R n first \o succn else @release R n first) (nseq m p)).
    case: e; [apply: (@seen_map _ _ (thresholded n first \o succn) _ g _ m)
             |apply: (@seen_map _ _ (thresholded n first) _ g _ m)]; rewrite ?size_nseq // => x le_x.
      by rewrite addn1; apply: eq_shown; rewrite ltnS (leq_trans le_x).
    by rewrite addn0; apply: eq_shown; apply: leqW; apply: leq_trans le_m.
  have [A A'] := theorem_A c first_gt0 p_01 in_0p size_m.
  by case: target; rewrite subn0 subn1; [apply: le_trans A | apply: le_trans A'];
    apply: (image_le c (kernel_map R g)); apply: by_release.
have [[m le_m le_H] [m' le_m' le_H']] := told_reaches c_gt0 first_gt0 p_01 told_1 told_first.
have := le_A true m le_m; have := le_A false m' le_m'; rewrite /= !subn0 !subn1 => A' A.
split; [exists m | exists m'] => //; apply: le_anti; rewrite ?A ?A' andbT.
  exact: le_trans (le_law true false m).
exact: le_trans (le_law false true m').
Qed.

End Cutoffs.
