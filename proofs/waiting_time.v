(* Theorem A of docs/mathematics.md, section 4, for n people: a count with a threshold tells no more than a waiting
   time. One random map turns both waiting times into what is published, as there. *)

From mathcomp Require Import all_ssreflect all_algebra.
From pkdp Require Import hockey_stick vertex.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(* The number of tosses up to and including the t-th success; one more than there are tosses if there are fewer. *)
Fixpoint wait (t : nat) (tosses : seq bool) : nat :=
  match t, tosses with
  | 0, _ => 0
  | _, [::] => 1
  | t'.+1, toss :: rest => (wait (if toss then t' else t) rest).+1
  end.

(* It is as it says: at most m exactly when the first m of the tosses hold t successes. *)
Lemma wait_le t m tosses : (m <= size tosses)%N -> (wait t tosses <= m)%N = (t <= successes (take m tosses))%N.
Proof.
elim: tosses t m => [|toss tosses IH] [|t] [|m] //= le_m; rewrite ltnS IH //.
by case: toss; rewrite /successes /= ?add1n ?add0n.
Qed.

(* and never more than one more than there are tosses. *)
Lemma wait_size t tosses : (wait t tosses <= (size tosses).+1)%N.
Proof. by elim: tosses t => [|toss tosses IH] [|t] //=; rewrite ltnS. Qed.

Section WaitingTime.

Variable R : realFieldType.
Implicit Types (c p : R) (ps : seq R) (g : seq bool -> R).

(* The mean of a constant. *)
Lemma mean_const ps (x : R) : mean ps (fun _ => x) = x.
Proof. by elim: ps => //= p ps ->; rewrite -mulrDl addrC subrK mul1r. Qed.

(* Means of what is not negative are not negative. *)
Lemma mean_ge0 ps g : all (fun p => 0 <= p <= 1) ps -> (forall tosses, 0 <= g tosses) -> 0 <= mean ps g.
Proof.
elim: ps g => [|p ps IH] g //= /andP[/andP[p_ge0 p_le1] in_01] g_ge0.
by apply: addr_ge0; apply: mulr_ge0; rewrite ?subr_ge0 ?p_ge0 ?p_le1 //; apply: IH => *; rewrite ?in_01 ?g_ge0.
Qed.

(* Larger functions have larger means. *)
Lemma mean_le ps g h : all (fun p => 0 <= p <= 1) ps -> (forall tosses, g tosses <= h tosses) -> mean ps g <= mean ps h.
Proof.
elim: ps g h => [|p ps IH] g h //= /andP[/andP[p_ge0 p_le1] in_01] le_gh.
by apply: ler_add; apply: ler_wpmul2l; rewrite ?subr_ge0 //; apply: IH.
Qed.

(* The mean of a sum. *)
Lemma mean_sum (I : finType) (A : pred I) ps (g : I -> seq bool -> R) :
  mean ps (fun t => \sum_(i | A i) g i t) = \sum_(i | A i) mean ps (g i).
Proof. by elim: ps g => [|p ps IH] g //=; rewrite !IH !mulr_sumr -big_split. Qed.

(* The mean of a multiple. *)
Lemma mean_mulr ps g (x : R) : mean ps (fun t => g t * x) = mean ps g * x.
Proof. by elim: ps g => [|p ps IH] g //=; rewrite !IH [RHS]mulrDl !mulrA. Qed.

(* Only tosses as many as there are coins matter. *)
Lemma mean_sized ps g h : (forall tosses, size tosses = size ps -> g tosses = h tosses) -> mean ps g = mean ps h.
Proof.
elim: ps g h => [|p ps IH] g h eq_gh /=; first exact: eq_gh.
by congr (_ * _ + _ * _); apply: IH => t size_t; apply: eq_gh; rewrite /= size_t.
Qed.

(* People with chance 0 do not count. *)
Lemma mean_zeros ps m (f : nat -> R) : mean_count (ps ++ nseq m 0) f = mean_count ps f.
Proof.
elim: ps f => [|p ps IH] f; last by rewrite cat_cons !mean_count_cons !IH.
by elim: m => //= m IH; rewrite mean_count_cons mul0r add0r subr0 mul1r IH.
Qed.

(* What is published of a count in 0, ..., n + 1: the count when it is at least k, else nothing. *)
Definition thresholded n k (count : nat) : option 'I_n.+2 := if (k <= count)%N then Some (inord count) else None.

(* As a channel, without randomness. *)
Definition release n k (count : nat) (y : option 'I_n.+2) : R := (thresholded n k count == y)%:R.

(* The law of min(W_t, n + 1): the waiting time for t successes of coins with chance p, n of which are tossed. *)
Definition waiting n p t (w : 'I_n.+2) : R := mean (nseq n p) (fun tosses => (wait t tosses == w)%:R).

(* The random map: up to toss j, the (k-1)-th or k-th success; so many successes among the tosses that are left
   until the j-th are added to k. *)
Definition continue n k j p (w : 'I_n.+2) (y : option 'I_n.+2) : R :=
  if (w <= j)%N then mean_count (nseq (j - w) p) (fun more => (Some (inord (k + more)) == y)%:R) else (None == y)%:R.

Arguments release n k count y : clear implicits.
Arguments waiting n p t w : clear implicits.
Arguments continue n k j p w y : clear implicits.

(* To count the successes of j coins is to wait for the t-th, and then to count those after it. *)
Lemma count_by_waiting p n j t (f : nat -> R) (none : R) : (j <= n)%N ->
  mean_count (nseq j p) (fun x => if (t <= x)%N then f (x - t)%N else none)
  = mean (nseq n p) (fun tosses => if (wait t tosses <= j)%N then mean_count (nseq (j - wait t tosses) p) f else none).
Proof.
elim: n j t => [|n IH] [|j] [|t] //= le_jn.
- by rewrite /= !mean_const /= /mean_count /= subn0 -mulrDl addrC subrK mul1r.
- by rewrite /= !mean_const -mulrDl addrC subrK mul1r.
- rewrite !mean_const -mulrDl addrC subrK mul1r; apply: eq_mean => tosses /=; by rewrite subn0.
rewrite mean_count_cons -/nseq; congr (_ * _ + _ * _).
  rewrite -IH //; apply: eq_mean => tosses /=; by rewrite ltnS subSS.
by rewrite -IH.
Qed.

(* The random map applied to the waiting time. *)
Lemma push_continue n k j p t y : push (continue n k j p) (waiting n p t) y
  = mean (nseq n p) (fun tosses => continue n k j p (inord (wait t tosses)) y).
Proof.
rewrite /push /waiting; under eq_bigr do rewrite -mean_mulr.
rewrite -mean_sum; apply: mean_sized => tosses; rewrite size_nseq => size_tosses.
have lt_wait : (wait t tosses < n.+2)%N by rewrite ltnS -size_tosses wait_size.
rewrite (bigD1 (inord (wait t tosses))) //= inordK // eqxx mul1r big1 ?addr0 // => w.
by rewrite eq_sym -val_eqE /= inordK // => /negbTE ->; rewrite mul0r.
Qed.

(* It is a random map: its chances are not negative and add up to 1. *)
Lemma kernel_continue n k j p : 0 <= p <= 1 -> kernel (continue n k j p).
Proof.
move=> p_01; have in_01 m : all (fun q => 0 <= q <= 1) (nseq m p) by rewrite all_nseq p_01 orbT.
have one (y' : option 'I_n.+2) : \sum_y (y' == y)%:R = 1 :> R.
  by rewrite (bigD1 y') //= eqxx big1 ?addr0 // => y /negbTE; rewrite eq_sym => ->.
rewrite /continue => w; case: (w <= j)%N; last by split; [move=> y; apply: ler0n | rewrite one].
split=> [y|]; first by apply: mean_ge0 => // tosses; apply: ler0n.
rewrite -(mean_sum xpredT _ (fun y tosses => (Some (inord (k + successes tosses)) == y :> option 'I_n.+2)%:R)).
by rewrite (@eq_mean _ _ _ (fun _ => 1)) ?mean_const // => tosses; apply: one.
Qed.

(* Published with the target present: the random map of the (k-1)-th success, where j others have chance p. *)
Lemma present_by_waiting n k j p y : (0 < k)%N -> (j <= n)%N ->
  seen (release n k \o succn) (nseq j p) y = push (continue n k j p) (waiting n p k.-1) y.
Proof.
case: k => // k _ le_jn; rewrite push_continue.
pose f x : R := (Some (inord (k.+1 + x)) == y :> option 'I_n.+2)%:R.
have := count_by_waiting p k f (None == y)%:R le_jn.
rewrite (@mean_sized (nseq n p) _ (fun tosses => continue n k.+1 j p (inord (wait k tosses)) y)) => [<-|tosses].
  apply: eq_mean => tosses; rewrite /= /release /thresholded /f ltnS.
  by case: leqP => // le_k; rewrite addSn subnKC.
by rewrite size_nseq => size_tosses; rewrite /continue inordK // ltnS -size_tosses wait_size.
Qed.

(* and with the target absent: the same random map of the k-th success. *)
Lemma absent_by_waiting n k j p y : (j <= n)%N ->
  seen (release n k) (nseq j p) y = push (continue n k j p) (waiting n p k) y.
Proof.
move=> le_jn; rewrite push_continue.
pose f x : R := (Some (inord (k + x)) == y :> option 'I_n.+2)%:R.
have := count_by_waiting p k f (None == y)%:R le_jn.
rewrite (@mean_sized (nseq n p) _ (fun tosses => continue n k j p (inord (wait k tosses)) y)) => [<-|tosses].
  apply: eq_mean => tosses; rewrite /= /release /thresholded /f.
  by case: leqP => // le_k; rewrite subnKC.
by rewrite size_nseq => size_tosses; rewrite /continue inordK // ltnS -size_tosses wait_size.
Qed.

(* Theorem A, that it is safe: for at most n people, each counted with a chance of at most p, the pair of waiting times
   (min(W_{k-1}, n + 1), min(W_k, n + 1)) dominates the release, at every c and in both orders. *)
Theorem theorem_A c p ps n k : (0 < k)%N -> 0 <= p <= 1 -> all (fun q => 0 <= q <= p) ps -> (size ps <= n)%N ->
  hockey c (seen (release n k \o succn) ps) (seen (release n k) ps) <= hockey c (waiting n p k.-1) (waiting n p k) /\
  hockey c (seen (release n k) ps) (seen (release n k \o succn) ps) <= hockey c (waiting n p k) (waiting n p k.-1).
Proof.
move=> k_gt0 p_01 in_0p le_n.
have zeros (K : nat -> option 'I_n.+2 -> R) j : seen K (nseq j p ++ nseq (size ps - j) 0) =1 seen K (nseq j p).
  by move=> y; apply: mean_zeros.
split.
  have [j le_j /= le_H] := worst_is_vertex c (release n k \o succn) (release n k) in_0p.
  apply: (le_trans le_H); apply: (image_le c (@kernel_continue n k j p p_01)) => y; rewrite zeros.
    by apply: present_by_waiting; rewrite // (leq_trans le_j).
  by apply: absent_by_waiting; rewrite (leq_trans le_j).
have [j le_j /= le_H] := worst_is_vertex c (release n k) (release n k \o succn) in_0p.
apply: (le_trans le_H); apply: (image_le c (@kernel_continue n k j p p_01)) => y; rewrite zeros.
  by apply: absent_by_waiting; rewrite (leq_trans le_j).
by apply: present_by_waiting; rewrite // (leq_trans le_j).
Qed.

(* The chance that the t-th success comes with toss x, by what the first toss shows. *)
Definition arrives n p t (x : nat) : R := mean (nseq n p) (fun tosses => (wait t tosses == x)%:R).

Lemma arrives_no_success n p x : arrives n p 0 x = (0%N == x)%:R.
Proof. by rewrite -[RHS](mean_const (nseq n p)); apply: eq_mean => -[]. Qed.

Lemma arrives_no_toss p t x : arrives 0 p t.+1 x = (1%N == x)%:R.
Proof. by []. Qed.

Lemma arrives_at_0 n p t : arrives n p t.+1 0 = 0.
Proof. by rewrite /arrives -[RHS](mean_const (nseq n p)); apply: eq_mean => -[|[]]. Qed.

Lemma arrives_first n p t x : arrives n.+1 p t.+1 x.+1 = p * arrives n p t x + (1 - p) * arrives n p t.+1 x.
Proof. by []. Qed.

(* The likelihood of the s-th success to the t-th, s <= t, does not increase from one toss to a later one. *)
Lemma arrives_ratio p n s t v w : 0 <= p <= 1 -> (s <= t)%N -> (v <= w)%N ->
  arrives n p s w * arrives n p t v <= arrives n p s v * arrives n p t w.
Proof.
move=> p_01; have f_ge0 m r x : 0 <= arrives m p r x.
  by apply: mean_ge0 => [|tosses]; rewrite ?ler0n // all_nseq p_01 orbT.
case/andP: p_01 => p_ge0 p_le1; have q_ge0 : 0 <= 1 - p by rewrite subr_ge0.
elim: n s t v w => [|n IH] s t v w.
  move: s t v w => [|s] [|t] v w // _; rewrite ?arrives_no_success ?arrives_no_toss;
    by rewrite -!natrM ler_nat; move: v w => [|[|v]] [|[|w]].
rewrite leq_eqVlt => /orP[/eqP <-|]; first by rewrite mulrC.
case: s t v w => [|s] [|t] [|v] [|w] // lt_st le_vw;
  rewrite ?arrives_no_success ?arrives_at_0 ?mul0r ?mul1r ?mulr0 //.
rewrite !arrives_first; move: (1 - p) q_ge0 => q q_ge0.
have scaled x y a b a' b' : 0 <= x -> 0 <= y -> a * b <= a' * b' -> x * a * (y * b) <= x * a' * (y * b') :> R.
  by move=> x_ge0 y_ge0 le_ab; rewrite mulrACA [leRHS]mulrACA ler_wpmul2l ?mulr_ge0.
rewrite !mulrDl !mulrDr; apply: ler_add; apply: ler_add; apply: scaled;
  first [exact: p_ge0 | exact: q_ge0 | apply: IH; last exact: le_vw].
- exact: ltnW.
- exact: ltnW (ltnW lt_st).
- exact: lt_st.
exact: ltnW.
Qed.

(* Where the ratio of two laws does not increase, the best event is an initial interval, maybe empty. *)
Lemma hockey_initial N c (P Q : 'I_N -> R) : 0 <= c -> (forall w, 0 <= P w) -> (forall w, 0 <= Q w) ->
  (forall v w : 'I_N, (v <= w)%N -> P w * Q v <= P v * Q w) ->
  exists m, let S := [set w : 'I_N | (w < m)%N] in hockey c P Q = weight P S - c * weight Q S.
Proof.
move=> c_ge0 P_ge0 Q_ge0 ratio; exists (\max_(w | (c * Q w < P w)%R) w.+1)%N.
apply: hockey_of_event => w; rewrite inE; last first; first move=> not_in.
  by rewrite leNgt; apply: contra not_in => lt; apply: (bigmax_sup w).
rewrite ltnNge leNgt; apply: contra => lt_w; apply/bigmax_leqP => u lt_u; rewrite ltnNge; apply/negP => le_wu.
have Q_gt0 : 0 < Q w.
  by rewrite lt_neqAle Q_ge0 andbT eq_sym; apply: contraTN lt_w => /eqP ->; rewrite mulr0 -leNgt.
have := ratio _ _ le_wu; apply/negP; rewrite -ltNge.
by apply: (le_lt_trans (ler_wpmul2r (Q_ge0 u) (ltW lt_w))); rewrite mulrAC ltr_pmul2r.
Qed.

(* An initial interval of waiting times: t successes within m tosses. *)
Lemma weight_waiting n p t m : weight (waiting n p t) [set w : 'I_n.+2 | (w < m.+1)%N]
  = mean (nseq n p) (fun tosses => (wait t tosses <= m)%N%:R).
Proof.
rewrite /weight /waiting -mean_sum; apply: mean_sized => tosses; rewrite size_nseq => size_tosses.
have lt_wait : (wait t tosses < n.+2)%N by rewrite ltnS -size_tosses wait_size.
rewrite big_mkcond (bigD1 (Ordinal lt_wait)) //= inE /= eqxx big1 ?addr0 => [|w]; first by rewrite ltnS; case: leqP.
by rewrite eq_sym -val_eqE /= => /negbTE ->; case: ifP.
Qed.

(* The chance that something is published. *)
Lemma weight_published n p m t (K : nat -> option 'I_n.+2 -> R) : (m <= n)%N ->
  (forall x, \sum_(y in [set~ None]) K x y = (t <= x)%N%:R) ->
  weight (seen K (nseq m p)) [set~ None] = weight (waiting n p t) [set w : 'I_n.+2 | (w < m.+1)%N].
Proof.
move=> le_mn published; rewrite weight_waiting /weight /seen /mean_count -mean_sum.
rewrite (eq_mean _ (fun tosses => published (successes tosses))).
have := count_by_waiting p t (fun _ => 1) 0 le_mn; rewrite /mean_count.
rewrite (eq_mean _ (h := fun tosses => (t <= successes tosses)%N%:R)) => [->|tosses /=]; last by case: ifP.
by apply: eq_mean => tosses; rewrite mean_const; case: ifP.
Qed.

(* A count is published when it is at least k. *)
Lemma release_published n k x : \sum_(y in [set~ None]) release n k x y = (k <= x)%N%:R.
Proof.
rewrite /release; case eq_y: (thresholded n k x) => [y|]; move: eq_y; rewrite /thresholded; case: leqP => // _ _.
  by rewrite (bigD1 (Some y)) ?inE //= eqxx big1 ?addr0 // => y' /andP[_]; rewrite eq_sym => /negbTE ->.
by apply: big1 => y; rewrite !inE eq_sym => /negbTE ->.
Qed.

(* All laws here have weight 1. *)
Lemma weight_all (T : finType) (K : nat -> T -> R) ps : (forall x, \sum_y K x y = 1) -> weight (seen K ps) setT = 1.
Proof.
move=> K_1; rewrite /weight /seen /mean_count -mean_sum (eq_mean _ (h := fun _ => 1)) ?mean_const // => tosses.
by rewrite -[RHS](K_1 (successes tosses)); apply: eq_bigl => y; rewrite inE.
Qed.

Lemma release_1 n k x : \sum_y release n k x y = 1.
Proof.
rewrite (bigD1 (thresholded n k x)) //= /release eqxx big1 ?addr0 // => y.
by rewrite eq_sym => /negbTE ->.
Qed.

Lemma weight_waiting_all n p t m : (n < m)%N -> weight (waiting n p t) [set w : 'I_n.+2 | (w < m.+1)%N] = 1.
Proof.
move=> lt_nm; rewrite weight_waiting -[RHS](mean_const (nseq n p)); apply: mean_sized => tosses.
by rewrite size_nseq => size_tosses; rewrite (leq_trans (wait_size _ _)) // size_tosses.
Qed.

(* The least such bound is no smaller for any release that tells whether the count is at least k: at every c, in the
   first order some number m of people reaches it, *)
Lemma told_reaches_present c p n k (K : nat -> option 'I_n.+2 -> R) : 0 <= c -> (0 < k)%N -> 0 <= p <= 1 ->
  (forall x, \sum_y K x y = 1) -> (forall x, \sum_(y in [set~ None]) K x y = (k <= x)%N%:R) ->
  exists2 m, (m <= n)%N & hockey c (waiting n p k.-1) (waiting n p k)
                          <= hockey c (seen (K \o succn) (nseq m p)) (seen K (nseq m p)).
Proof.
move=> c_ge0 k_gt0 p_01 K_1 told.
have waiting_ge0 t w : 0 <= waiting n p t w.
  by apply: mean_ge0 => [|tosses]; rewrite ?ler0n // all_nseq p_01 orbT.
have [m0 /= ->] := hockey_initial c_ge0 (waiting_ge0 k.-1) (waiting_ge0 k)
  (fun v w le_vw => arrives_ratio n p_01 (leq_pred k) le_vw).
case: m0 => [|m].
  by exists 0%N => //; rewrite /weight !big1 ?mulr0 ?subrr ?hockey_ge0 // => w; rewrite inE.
have [le_mn|lt_nm] := leqP m n; last first.
  exists 0%N => //; rewrite !weight_waiting_all //.
  have := event_le_hockey c (seen (K \o succn) (nseq 0 p)) (seen K (nseq 0 p)) setT.
  by rewrite !weight_all // => x; apply: K_1.
exists m => //; rewrite -(weight_published p le_mn told).
rewrite -(@weight_published _ p _ k.-1 (K \o succn) le_mn) ?event_le_hockey // => x.
by rewrite told; case: k k_gt0 told.
Qed.

(* and in the second order. *)
Lemma told_reaches c p n k (K : nat -> option 'I_n.+2 -> R) : 0 < c -> (0 < k)%N -> 0 <= p <= 1 ->
  (forall x, \sum_y K x y = 1) -> (forall x, \sum_(y in [set~ None]) K x y = (k <= x)%N%:R) ->
  (exists2 m, (m <= n)%N & hockey c (waiting n p k.-1) (waiting n p k)
                           <= hockey c (seen (K \o succn) (nseq m p)) (seen K (nseq m p))) /\
  (exists2 m, (m <= n)%N & hockey c (waiting n p k) (waiting n p k.-1)
                           <= hockey c (seen K (nseq m p)) (seen (K \o succn) (nseq m p))).
Proof.
move=> c_gt0 k_gt0 p_01 K_1 told; split; first by apply: told_reaches_present => //; apply: ltW.
have [|m le_mn reached] := @told_reaches_present c^-1 p n k K _ k_gt0 p_01 K_1 told; first by rewrite invr_ge0 ltW.
exists m => //; rewrite (hockey_other_order _ _ c_gt0) [leRHS](hockey_other_order _ _ c_gt0).
have all_w : setT = [set w : 'I_n.+2 | (w < n.+2)%N] by apply/setP => w; rewrite !inE ltn_ord.
rewrite !weight_all // ?all_w ?weight_waiting_all // => [|x]; last exact: K_1.
by rewrite ler_add2l ler_pmul2l.
Qed.

(* Theorem A, that it is the least such bound: at every c it is reached, in each order by m people for some m. *)
Theorem theorem_A_reached c p n k : 0 < c -> (0 < k)%N -> 0 <= p <= 1 ->
  (exists2 m, (m <= n)%N & hockey c (seen (release n k \o succn) (nseq m p)) (seen (release n k) (nseq m p))
                           = hockey c (waiting n p k.-1) (waiting n p k)) /\
  (exists2 m, (m <= n)%N & hockey c (seen (release n k) (nseq m p)) (seen (release n k \o succn) (nseq m p))
                           = hockey c (waiting n p k) (waiting n p k.-1)).
Proof.
move=> c_gt0 k_gt0 p_01; have in_0p m : all (fun q => 0 <= q <= p) (nseq m p).
  by rewrite all_nseq lexx; case/andP: p_01 => -> _; rewrite orbT.
have [[m le_m le_H] [m' le_m' le_H']] :=
  told_reaches c_gt0 k_gt0 p_01 (@release_1 n k) (@release_published n k).
have size_le j : (j <= n)%N -> (size (nseq j p) <= n)%N by rewrite size_nseq.
have [A _] := theorem_A c k_gt0 p_01 (in_0p m) (size_le m le_m).
have [_ A'] := theorem_A c k_gt0 p_01 (in_0p m') (size_le m' le_m').
by split; [exists m | exists m'] => //; apply: le_anti; rewrite ?le_H ?le_H' ?A ?A'.
Qed.

End WaitingTime.
