(* The worst attacker is at a vertex: lemma 2 of docs/mathematics.md, section 2, for every channel from counts to what
   is published: suppression, noise, both, or neither. People are independent coins. *)

From mathcomp Require Import all_ssreflect all_algebra.
From pkdp Require Import hockey_stick.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Vertex.

Variable R : realFieldType.
Implicit Types (T U : finType) (c : R) (ps qs : seq R) (box : seq (R * R)).

(* The i-th number lies in the i-th interval; or at one of its ends. *)
Definition inside ps box := all2 (fun p ab => ab.1 <= p <= ab.2) ps box.
Definition corner ps box := all2 (fun p ab => (p == ab.1) || (p == ab.2)) ps box.

(* In a box, f is convex in each number while the others (before and after it) stay as they are. *)
Definition convex_in_each (f : seq R -> R) box := forall before after p q s,
  0 <= s <= 1 -> inside (before ++ p :: after) box -> inside (before ++ q :: after) box ->
  f (before ++ s * p + (1 - s) * q :: after) <= s * f (before ++ p :: after) + (1 - s) * f (before ++ q :: after).

(* A number of an interval is a mixture of the interval's ends. *)
Lemma mixture (a b p : R) : a <= p <= b -> exists2 s, 0 <= s <= 1 & p = s * a + (1 - s) * b.
Proof.
case/andP=> le_ap le_pb; have := le_trans le_ap le_pb; rewrite le_eqVlt => /orP[/eqP eq_ab|lt_ab].
  exists 1; first by rewrite ler01 lexx.
  by rewrite mul1r subrr mul0r addr0; apply: le_anti; rewrite le_ap eq_ab le_pb.
have gt0 : 0 < b - a by rewrite subr_gt0.
exists ((b - p) / (b - a)).
  by rewrite divr_ge0 ?subr_ge0 ?(ltW lt_ab) //= ler_pdivr_mulr // mul1r ler_add2l ler_opp2.
by rewrite [(1 - _) * b]mulrBl mul1r addrCA -mulrBr -(opprB b a) mulrN divfK ?gt_eqF // opprB addrC subrK.
Qed.

(* A mixture of two numbers is at most one of them. *)
Lemma mixture_le (s x y z : R) : 0 <= s <= 1 -> z <= s * x + (1 - s) * y -> z <= x \/ z <= y.
Proof.
case/andP=> s_ge0 s_le1 le_z; case: (leP z x) => [|lt_x]; [by left | right; rewrite leNgt; apply/negP => lt_y].
move: le_z; apply/negP; rewrite -ltNge.
have -> : z = s * z + (1 - s) * z by rewrite -mulrDl addrC subrK mul1r.
have := s_ge0; rewrite le_eqVlt => /orP[/eqP <-|s_gt0]; first by rewrite subr0 !mul0r !mul1r !add0r.
by apply: ltr_le_add; rewrite ?ltr_pmul2l // ler_wpmul2l ?subr_ge0 // ltW.
Qed.

(* Lists of pairs of lists that begin with parts of the same length are compared part by part. *)
Lemma inside_cat ps qs box box' : inside ps box -> inside (ps ++ qs) (box ++ box') = inside qs box'.
Proof. by elim: ps box => [|p ps IH] [|ab box] //= /andP[-> /IH]. Qed.

(* Vertex lemma: a function that is convex in each number is nowhere in the box larger than at all corners. *)
Theorem vertex (f : seq R -> R) box ps : convex_in_each f box -> inside ps box ->
  exists2 qs, corner qs box & f ps <= f qs.
Proof.
move=> convex; suff step before passed box' ps' : box = passed ++ box' -> inside before passed -> inside ps' box' ->
  exists2 qs, corner qs box' & f (before ++ ps') <= f (before ++ qs) by apply: (step [::] [::]).
elim: box' ps' before passed => [|[a b] box' IH] [|p ps'] // before passed eq_box in_passed.
  by exists [::].
rewrite /= => /andP[in_ab in_box'].
have within e : a <= e <= b -> inside (before ++ e :: ps') box by rewrite eq_box inside_cat //= => ->.
have [s s_01 eq_p] := mixture in_ab; have le_ab : a <= b by case/andP: in_ab; apply: le_trans.
suff [e at_end le_e] : exists2 e, (e == a) || (e == b) & f (before ++ p :: ps') <= f (before ++ e :: ps').
  have in_ab_e : a <= e <= b by case/orP: at_end => /eqP ->; rewrite lexx le_ab.
  have [|||qs at_corner le_qs] := IH ps' (rcons before e) (rcons passed (a, b)) => //.
  - by rewrite cat_rcons.
  - by rewrite -!cats1 inside_cat //= in_ab_e.
  by exists (e :: qs); rewrite /= ?at_end // (le_trans le_e) // -!cat_rcons.
rewrite eq_p; have [||le_a|le_b] := mixture_le s_01 (convex before ps' a b s s_01 _ _).
- by apply: within; rewrite lexx.
- by apply: within; rewrite le_ab lexx.
- by exists a; rewrite ?eqxx.
by exists b; rewrite ?eqxx ?orbT.
Qed.

(* Independent coins with chances ps are tossed; the mean of g over what they show, the first coin first. *)
Fixpoint mean ps (g : seq bool -> R) : R :=
  if ps is p :: ps' then p * mean ps' (fun tosses => g (true :: tosses))
                         + (1 - p) * mean ps' (fun tosses => g (false :: tosses))
  else g [::].

(* What a list of tosses weighs: the product of the chances of what each coin shows. *)
Definition toss_weight ps (tosses : seq bool) : R := \prod_(pt <- zip ps tosses) if pt.2 then pt.1 else 1 - pt.1.

(* The mean is the sum over all lists of tosses, each with its weight. *)
Lemma mean_is_sum ps g : mean ps g = \sum_(tosses : (size ps).-tuple bool) toss_weight ps tosses * g tosses.
Proof.
elim: ps g => [|p ps IH] g /=.
  by rewrite (big_pred1 [tuple]) => [|t]; rewrite ?[t]tuple0 ?eqxx // /toss_weight big_nil mul1r.
rewrite (reindex (fun bt : bool * (size ps).-tuple bool => [tuple of bt.1 :: bt.2])) /=; last first.
  exists (fun t => (thead t, [tuple of behead t])) => [[b t]|t] _ /=.
    by congr (_, _); apply: val_inj.
  by rewrite -tuple_eta.
rewrite -(pair_bigA _ (fun b (t : _.-tuple bool) => toss_weight (p :: ps) (b :: t) * g (b :: t))) /=.
rewrite (big_bool _) !IH !mulr_sumr.
by congr (_ + _); apply: eq_bigr => t _; rewrite /toss_weight /= big_cons mulrA.
Qed.

(* How many of the tosses succeed. *)
Definition successes : seq bool -> nat := count id.

(* The mean depends on the values of g only. *)
Lemma eq_mean ps g h : g =1 h -> mean ps g = mean ps h.
Proof. by elim: ps g h => [|p ps IH] g h eq_gh /=; rewrite ?(IH _ _ (fun t => eq_gh (_ :: t))). Qed.

(* The mean is an affine function of each chance. *)
Lemma mean_affine before after p q s g :
  mean (before ++ s * p + (1 - s) * q :: after) g
  = s * mean (before ++ p :: after) g + (1 - s) * mean (before ++ q :: after) g.
Proof.
elim: before g => [|r before IH] g /=; last first.
  by rewrite !IH !mulrDr addrACA ![r * (_ * _)]mulrCA ![(1 - r) * (_ * _)]mulrCA.
set x := mean _ _; set y := mean _ _.
have split (u : R) : u * x + (1 - u) * y = y + u * (x - y) by rewrite mulrBl mul1r mulrBr addrCA.
rewrite !split; move: (x - y) => d; rewrite mulrDl !mulrDr addrACA -[s * y + _]mulrDl.
by rewrite [s + _]addrC subrK mul1r !mulrA.
Qed.

(* The mean of a function of the number of successes: of the law of a count. *)
Definition mean_count ps (f : nat -> R) : R := mean ps (f \o successes).

(* The first coin adds one success or none. *)
Lemma mean_count_cons p ps f : mean_count (p :: ps) f = p * mean_count ps (f \o succn) + (1 - p) * mean_count ps f.
Proof. by []. Qed.

(* A coin counts alike wherever it is tossed, *)
Lemma mean_count_front p before after f :
  mean_count (before ++ p :: after) f = mean_count (p :: before ++ after) f.
Proof.
elim: before f => [//|q before IH] f; rewrite cat_cons mean_count_cons !IH !mean_count_cons !mulrDr -!addrA.
by rewrite mulrCA; congr (_ + _); rewrite addrCA; congr (_ + (_ + _)); rewrite mulrCA.
Qed.

(* so a count does not depend on the order of the coins. *)
Lemma mean_count_perm ps qs f : perm_eq ps qs -> mean_count ps f = mean_count qs f.
Proof.
elim: ps qs f => [|p ps IH] qs f eq_ps; first by case: qs {eq_ps}(perm_size eq_ps).
have in_qs: p \in qs by rewrite -(perm_mem eq_ps) mem_head.
case/splitPr: in_qs eq_ps => before after eq_ps.
have {}eq_ps : perm_eq ps (before ++ after).
  by rewrite -(perm_cons p) (permPl eq_ps) -[_ :: after]cat1s perm_catCA.
by rewrite mean_count_front !mean_count_cons !(IH _ _ eq_ps).
Qed.

(* The law of what is published: a channel K turns the count of the others into what is seen. *)
Definition seen U (K : nat -> U -> R) ps (y : U) : R := mean_count ps (K ^~ y).

(* The divergence of two channels' laws is convex in each chance. *)
Lemma hockey_seen_convex U c (K K' : nat -> U -> R) box :
  convex_in_each (fun ps => hockey c (seen K ps) (seen K' ps)) box.
Proof.
move=> before after p q s /andP[s_ge0 s_le1] _ _.
pose w (i : bool) := if i then s else 1 - s; pose ps (i : bool) := before ++ (if i then p else q) :: after.
have := @hockey_convex R _ _ c w (fun i => seen K (ps i)) (fun i => seen K' (ps i)).
rewrite big_bool /= => le; rewrite (le_trans _ (le _)) => [//||[]]; rewrite ?subr_ge0 //.
by rewrite le_eqVlt; apply/orP; left; apply/eqP/eq_hockey => y; rewrite big_bool; apply: mean_affine.
Qed.

(* Where all boxes are [a, b], a corner is j chances b and the others a, in some order. *)
Lemma corner_perm (a b : R) n qs : corner qs (nseq n (a, b)) ->
  exists2 j, (j <= n)%N & perm_eq qs (nseq j b ++ nseq (n - j) a).
Proof.
elim: n qs => [|n IH] [|q qs] //= => [_|/andP[at_end /IH[j le_j eq_qs]]]; first by exists 0%N.
case/orP: at_end => /eqP ->; last by exists j.+1; rewrite // subSS perm_cons.
exists j; first exact: leqW.
by rewrite subSn // perm_sym -[nseq _.+1 _]/([:: a] ++ nseq _ _) perm_catCA perm_cons perm_sym.
Qed.

(* Lemma 2, for any two channels: among the attackers with all chances in [a, b] one is worst for whom j people have
   chance b and the others chance a. *)
Theorem worst_is_vertex U c (K K' : nat -> U -> R) (a b : R) ps : all (fun p => a <= p <= b) ps ->
  exists2 j, (j <= size ps)%N &
  let qs := nseq j b ++ nseq (size ps - j) a in
  hockey c (seen K ps) (seen K' ps) <= hockey c (seen K qs) (seen K' qs).
Proof.
move=> in_ab; have in_box : inside ps (nseq (size ps) (a, b)).
  by elim: ps in_ab => //= p ps IH /andP[-> /IH].
have [qs /corner_perm[j le_j eq_qs] le_qs] := vertex (@hockey_seen_convex U c K K' _) in_box.
exists j => //=; apply: (le_trans le_qs).
by rewrite le_eqVlt; apply/orP; left; apply/eqP/eq_hockey => y; apply: mean_count_perm.
Qed.

(* The larger divergence of the two orders. *)
Definition both_orders T c (P Q : T -> R) : R := Num.max (hockey c P Q) (hockey c Q P).

(* Lemma 2: the target, present, adds one to the count. For every channel, which may suppress and add noise, and both
   orders of the two lives, no attacker is above the worst of the vertices j = 0, ..., n. *)
Theorem lemma_2 U c (K : nat -> U -> R) (a b : R) ps : all (fun p => a <= p <= b) ps ->
  exists2 j, (j <= size ps)%N &
  let qs := nseq j b ++ nseq (size ps - j) a in
  both_orders c (seen (K \o succn) ps) (seen K ps) <= both_orders c (seen (K \o succn) qs) (seen K qs).
Proof.
move=> in_ab; rewrite {1}/both_orders.
have [j le_j le_H] := worst_is_vertex c (K \o succn) K in_ab.
have [j' le_j' le_H'] := worst_is_vertex c K (K \o succn) in_ab.
case: leP => _; [exists j' | exists j] => //=; rewrite /both_orders le_maxr ?le_H ?le_H' ?orbT //.
Qed.

End Vertex.
