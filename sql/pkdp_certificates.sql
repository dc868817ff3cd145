-- Certificates in DuckDB alone: δ and ε of a threshold, of rounding and bands, of a secret sample and of noise. No Python.
--
--     .read sql/pkdp_certificates.sql
--     SELECT pkdp_threshold_delta(20, 0.1, 1);                              -- k = 20, p_max = 0.1, ε = 1
--     SELECT pkdp_threshold_epsilon(20, 0.1, 1e-6);                         -- the ε at δ = 1e-6
--     SELECT pkdp_threshold_delta(pkdp_display_k({'bands': [0, 10, 20]}), 0.1, 1);
--     SELECT pkdp_sampled_delta(8, 0.1, 1), pkdp_noise_delta(0.5, 0.2);
--
-- Reads no data, publishes nothing, charges nothing. Arguments may be columns; they are read as DOUBLE.
--
-- k          published only when the count is at least k; a whole number from 1 to 1000
-- p_max      above 0 and below 1: how sure the attacker can be, at most, that another person is counted. Of a histogram's
--            cell: told that a person is in it or absent. Nothing else is assumed of unknown people: not their number.
-- known      how many people the attacker knows who may count (0); influence: whether merely so ('passive'), or because
--            they are under the attacker's control ('active'), which takes them off k
-- sampled    the most that anybody's chance to be drawn is; draws are independent and secret, everything else is known
-- noise      the ε of two-sided geometric noise; protects: 'presence' (one number changes by 1) or 'value' (two do)
-- epsilon    at least 0
-- delta      from 0 to 1
--
-- Guarantee: δ is never below the hockey-stick divergence, in either order, of any attacker that is declared this way,
-- and never below the library's certified number; from 1e-280 on it is less than 1e-9 of itself above the exact one. Two
-- exceptions are looser, and true: people merely known (the median of 600 random cases is 5 % above, the largest 9 times,
-- for a large ε), and `sampled` below 1e-5. At the ε that is returned the macro for δ gives at most δ; ε is
-- infinite where none up to 1024 does. An argument that is missing, no number, or outside its range is an error.
-- Assumed: people are independent of one another for the attacker, and k is fixed before anybody looks at the data. It is
-- about whether a person is there, in one release only. Where nobody is absent, and people who are known are controlled,
-- p_max_between in the place of p_max is about which of two cells she is in (theorem C). `pkdp_pipeline` adds up several
-- releases and has the other theorems; the proofs stand in docs/mathematics.md.
--
-- Rounding. u = 2^-53; exp and ln are assumed right within 2u, as in every mathematical library in use. With t = k - 1
-- ≤ 999, g = e^ε, the terms (a + bi)/(t + 1 + i) on the right and (a + bi)/(n + i) on the left of docs/numerics.md,
-- section 1, f the density at t, and P and Q the tails whose difference δ = P - gQ is:
-- * An error e in g changes δ by at most e·gQ, also where it moves the whole number m* or m° (for another number,
--   optimal for g', δ is P - g'Q less |g' - g|Q). On the right (a + bi)/(t + 1 + i) ≥ 1/(t + 1), so P ≤ (t + 1)δ and gQ
--   ≤ tδ. On the left (a + bi)/(n + i) ≥ b/(n + 1) ≥ 1/(t + 1) for i ≥ 1, so Q ≤ (t + 1)δ; and for n ≥ 2 the first
--   ratio is at least 1/2g, so f ≤ 2g(t + 1)δ. With n = 1 the left order is at most p^t, so below the right one.
-- * m* and m° err like g, by 6u: 12u·t and 12u·g(t + 1).
-- * a has the absolute error 7u(t + 1) on the right, where it is at least 1; on the left 7u·n, which adds at most 7u·P:
--   21u·g(t + 1).
-- * f is a product of t factors with 7u each; their common (1-p)^(n/t) adds 8u·n|ln(1-p)|, at most 8u·t and 8u·tg.
--   ln(1-p) errs by 6u (a logarithm of the rounded 1 - p, divided by what was rounded: Goldberg 1991, theorem 4).
-- * The sum is Horner's scheme over T terms, 8u each, from the bound of the rest; T ≤ 101 + 9.9 √(t + 1).
-- Together with the library's own (16T + 100)u that is below (5000 + 80(t + 1)g)u, by which results are raised (g = 1
-- on the right): 1e-11 at k = 1000. A left order with large g is raised more, and far below the right one. Underflow
-- loses less than the 1e-290 that is added. For theorem S the growths 1 + E/β and βe^ε/a err by 12u and are lowered by
-- 90u(1 + ln g), the second one by β/a times that; a errs by 12u·β and is raised by 90u·β + 2e-15. Noise is one
-- quotient with expm1 as above, 40u, raised by 2e-12, as the library sums a lattice. Averages over people merely known
-- are raised by 1e-6 for their weights and by the 1e-3 to which the library searches. An ε is one at which the macro's
-- own δ was at most the one asked for.

-- Arguments ------------------------------------------------------------------------------------------------------------

-- A chance below 1e-200 is replaced by this one, which only raises δ.
CREATE OR REPLACE MACRO _pkdp_share(name, x) AS
CASE WHEN TRY_CAST(x AS DOUBLE) > 0 AND TRY_CAST(x AS DOUBLE) < 1 THEN greatest(TRY_CAST(x AS DOUBLE), 1e-200)
ELSE error(name || ' must be a probability above 0 and below 1: write ' || name || ' := 0.1.') END;

CREATE OR REPLACE MACRO _pkdp_whole(name, x, lowest, highest) AS
CASE WHEN TRY_CAST(x AS DOUBLE) BETWEEN lowest AND highest AND TRY_CAST(x AS DOUBLE) = floor(TRY_CAST(x AS DOUBLE))
THEN TRY_CAST(x AS DOUBLE)
ELSE error(name || ' must be a whole number from ' || lowest || ' to ' || highest
    || CASE WHEN name = 'k' THEN '; δ only falls with k, so that of k := 1000 holds for a larger one' ELSE '' END
    || ': write ' || name || ' := ' || greatest(lowest, 20) || '.') END;

CREATE OR REPLACE MACRO _pkdp_at_least_0(name, x) AS
CASE WHEN TRY_CAST(x AS DOUBLE) >= 0 AND isfinite(TRY_CAST(x AS DOUBLE)) THEN TRY_CAST(x AS DOUBLE)
ELSE error(name || ' must be finite and at least 0: write ' || name || ' := 1.') END;

CREATE OR REPLACE MACRO _pkdp_noise_size(x) AS
CASE WHEN TRY_CAST(x AS DOUBLE) > 0 AND TRY_CAST(x AS DOUBLE) <= 1e300 THEN TRY_CAST(x AS DOUBLE)
ELSE error('noise must be finite and above 0: write noise := 0.5.') END;

CREATE OR REPLACE MACRO _pkdp_target(x) AS
CASE WHEN TRY_CAST(x AS DOUBLE) >= 0 AND TRY_CAST(x AS DOUBLE) <= 1 THEN TRY_CAST(x AS DOUBLE)
ELSE error('delta must be a probability from 0 to 1: write delta := 1e-6.') END;

CREATE OR REPLACE MACRO _pkdp_choice(name, x, first_choice, second_choice) AS
CASE WHEN x = first_choice OR x = second_choice THEN x
ELSE error(name || ' must be ''' || first_choice || ''' or ''' || second_choice || ''': write ' || name || ' := '''
    || first_choice || '''.') END;

-- Elementary -----------------------------------------------------------------------------------------------------------
-- `list_transform([x], lambda y: …)[1]` names a value, so that it is computed once.

-- ln(1 - p) and e^x - 1 without cancellation, within 8u: the rounded 1 - p (or e^x) is used twice, and both errors cancel.
CREATE OR REPLACE MACRO _pkdp_log1m(p) AS
CASE WHEN 1 - p = 1 THEN -p ELSE p * ln(1 - p) / (1 - (1 - p)) END;

CREATE OR REPLACE MACRO _pkdp_expm1(x) AS
list_transform([exp(x)], lambda w: CASE WHEN w = 1 THEN x ELSE (w - 1) * x / ln(w) END)[1];

-- P[Bin(n + s, p) = s] = Π_{i ≤ s} (n + i)/i · p · w, with w^s = (1 - p)^n. Factors fall with i and the product is at most
-- e^(s/e) on its way, so nothing overflows, and what underflows is below 1e-290.
CREATE OR REPLACE MACRO _pkdp_binomial(s, n, p) AS
list_transform(
    [exp(n * _pkdp_log1m(p) / greatest(s, 1))],
    lambda w: list_reduce(
        list_prepend(CASE WHEN s = 0 THEN w ELSE 1e0 END, range(1, s::BIGINT + 1)::DOUBLE[]),
        lambda product, i: product * ((n + i) / i * p * w)
    )
)[1];

-- How many terms leave less than 1e-18 of a sum whose ratios fall like t/(g (t + i)); all others are bounded in any case.
CREATE OR REPLACE MACRO _pkdp_terms(t, g, falling) AS
least(
    ceil(least(42 + ln(t + 1) + sqrt((42 + ln(t + 1)) * (42 + ln(t + 1) + 2 * t)), (42 + ln(t + 1)) / greatest(ln(g), 1e-6))) + 2,
    falling + 1
);

-- Σ_i R_i (a + b i)/(start + i), R_i the product of the ratios (falling - l) odds/(start + l) for l < i. Horner's scheme from
-- the last term, where the rest is at most R_T/(1 - r_T): ratios fall, and (a + b i)/(start + i) is at most 1.
CREATE OR REPLACE MACRO _pkdp_series(a, b, start, falling, odds, terms) AS
list_transform(
    [{a: a, b: b, start: start, falling: falling, odds: odds, terms: terms}],
    lambda s: list_reduce(
        list_prepend(
            1 / greatest(1 - greatest(s.falling - s.terms, 0) * s.odds / (s.start + s.terms), 1e-16),
            range(s.terms::BIGINT - 1, -1, -1)::DOUBLE[]
        ),
        lambda total, i: (s.a + s.b * i + greatest(s.falling - i, 0) * s.odds * total) / (s.start + i)
    )
)[1];

-- Above the error of one order, and above what the library's own rounding adds; see the head.
CREATE OR REPLACE MACRO _pkdp_raised(x, t, g) AS x * (1 + (5000 + 80 * (t + 1) * g) * 1.2e-16) + 1e-290;

-- Theorem A -----------------------------------------------------------------------------------------------------------
-- Any number of unknown people, each counted with probability at most p; published when count >= t + 1. Waiting times
-- dominate: H(W_t ‖ W_{t+1}) and H(W_{t+1} ‖ W_t), each attained by one number of people.

-- P[S ≥ t] - g P[S ≥ t+1], m = t + n, n = ⌊t (1-p)/(p g)⌋, which is Σ_i f(t+i) (1 - g f(t+i+1)/f(t+i)).
CREATE OR REPLACE MACRO _pkdp_right(t, p, g) AS
list_transform(
    [floor(t * ((1 - p) / p) / g)],
    lambda trials: _pkdp_raised(
        _pkdp_binomial(t, trials, p)
        * _pkdp_series(
            greatest(t + 1 - trials * (p / (1 - p) * g), 1), 1 + p / (1 - p) * g, t + 1, trials, p / (1 - p), _pkdp_terms(t + 1, g, trials)
        ),
        t, 1
    )
)[1];

-- P[S ≤ t] - g P[S ≤ t-1], m = t + n - 1, n = ⌈g t (1-p)/p⌉. With n = 1 it is below the right order's p^t. It falls with g,
-- so a large g is replaced by a smaller one.
CREATE OR REPLACE MACRO _pkdp_left(t, p, growth) AS
list_transform(
    [{g: least(growth, 1e13), n: ceil(t * ((1 - p) / p) * least(growth, 1e13))}],
    lambda worst: CASE WHEN worst.n <= 1 THEN 0e0 ELSE _pkdp_raised(
        _pkdp_binomial(t, worst.n - 1, p)
        * _pkdp_series(
            greatest(worst.n - t * ((1 - p) / p) * worst.g, 0), 1 + (1 - p) / p * worst.g, worst.n, t, (1 - p) / p, _pkdp_terms(t, worst.g, t)
        ),
        t, worst.g
    ) END
)[1];

-- P[Bin(people, p) ≥ s] for s ≥ 1: a sum as above where terms fall, else 1 less those below.
CREATE OR REPLACE MACRO _pkdp_at_least(s, people, p) AS
CASE
    WHEN people < s THEN 0e0
    WHEN (people - s) * p < 0.99 * (s + 1) * (1 - p) THEN _pkdp_binomial(s, people - s, p) * _pkdp_series(
        s + 1, 1e0, s + 1, people - s, p / (1 - p), _pkdp_terms(s + 1, 1e0, people - s)
    )
    ELSE 1 - 0.999999 * list_sum(list_transform(range(0, s::BIGINT)::DOUBLE[], lambda b: _pkdp_binomial(b, people - b, p)))
END;

-- Behind a threshold k beside `known` people. Controlled: k - known. Merely known: b of them count, b ~ Bin(known, p), and
-- then k - b. The average over b, with the worst number of unknown people for every b, bounds that with one number for all,
-- for which the library searches, to within 1 part in 1000.
CREATE OR REPLACE MACRO _pkdp_threshold(k, p, g, known, influence) AS
CASE
    WHEN k - CASE WHEN influence = 'active' THEN known ELSE 0 END <= 1 THEN 1e0
    WHEN known = 0 OR influence = 'active' THEN
        least(1, greatest(_pkdp_right(k - 1 - known, p, g), _pkdp_left(k - 1 - known, p, g)))
    ELSE least(1, 1.001002 * (
        _pkdp_at_least(k - 1, known, p) + 1e-279
        + list_sum(list_transform(
            range(0, least(known, k - 2)::BIGINT + 1)::DOUBLE[],
            lambda b: _pkdp_binomial(b, known - b, p) * least(1, greatest(_pkdp_right(k - 1 - b, p, g), _pkdp_left(k - 1 - b, p, g)))
        ))
    ))
END;

CREATE OR REPLACE MACRO pkdp_threshold_delta(k, p_max, epsilon, known := 0, influence := 'passive') AS
list_transform(
    [{
        k: _pkdp_whole('k', k, 1, 1000), p: _pkdp_share('p_max', p_max),
        g: exp(least(_pkdp_at_least_0('epsilon', epsilon), 600)), known: _pkdp_whole('known', known, 0, 1000000000),
        influence: _pkdp_choice('influence', influence, 'passive', 'active')
    }],
    lambda given: _pkdp_threshold(given.k, given.p, given.g, given.known, given.influence)
)[1];

-- The ε at a δ: 60 halvings from 1024 downward. What is kept is an ε at which δ was reached, so the result is certified;
-- it begins with infinity. Then 0 is tried, and last an ε that is larger by 4e-12, what the library's search may stop above.
CREATE OR REPLACE MACRO _pkdp_steps() AS
['inf'::DOUBLE, 1024] || list_transform(range(9, -51, -1), lambda i: pow(2e0, i)) || [0, -1];

CREATE OR REPLACE MACRO _pkdp_stepped(kept, step) AS
CASE step WHEN 1024 THEN 1024 WHEN 0 THEN 0 WHEN -1 THEN kept * (1 + 4e-12) ELSE greatest(kept - step, 0) END;

CREATE OR REPLACE MACRO pkdp_threshold_epsilon(k, p_max, delta, known := 0, influence := 'passive') AS
list_transform(
    [{
        k: _pkdp_whole('k', k, 1, 1000), p: _pkdp_share('p_max', p_max), target: _pkdp_target(delta),
        known: _pkdp_whole('known', known, 0, 1000000000),
        influence: _pkdp_choice('influence', influence, 'passive', 'active')
    }],
    lambda given: list_reduce(_pkdp_steps(), lambda kept, step: CASE
        WHEN _pkdp_threshold(
            given.k, given.p, exp(least(_pkdp_stepped(kept, step), 600)), given.known, given.influence
        ) <= given.target THEN _pkdp_stepped(kept, step) ELSE kept
    END)
)[1];

-- Theorem R -----------------------------------------------------------------------------------------------------------
-- What is shown is a function of the count, so it tells no more than the count suppressed below the first one that is shown
-- otherwise than the count before: that count takes the place of k. Behind a k of its own, k stands.

CREATE OR REPLACE MACRO pkdp_display_k(display) AS
list_transform(
    [{
        base: TRY_CAST(to_json(display) ->> '$.rounding' AS DOUBLE), "mode": coalesce(to_json(display) ->> '$.mode', 'nearest'),
        bands: TRY_CAST(to_json(display) ->> '$.bands' AS DOUBLE[])
    }],
    lambda rule: CASE
        WHEN rule.base >= 2 AND rule.base = floor(rule.base) AND isfinite(rule.base)
        THEN CASE rule."mode" WHEN 'nearest' THEN ceil(rule.base / 2) WHEN 'down' THEN rule.base WHEN 'midpoint' THEN rule.base
            ELSE error('mode must be ''nearest'', ''down'' or ''midpoint'': write {''rounding'': 5, ''mode'': ''down''}.') END
        WHEN len(rule.bands) >= 2 AND rule.bands[1] = 0 AND rule.bands = list_sort(list_distinct(list_transform(rule.bands, lambda edge: floor(edge))))
            AND isfinite(rule.bands[-1])
        THEN rule.bands[2]
        ELSE error('display must round to a whole number from 2 on, or have bands that begin with 0: write '
            || '{''rounding'': 5} or {''bands'': [0, 10, 20]}; with another rule give its k to the other macros.')
    END
)[1]::BIGINT;

-- Theorem S -----------------------------------------------------------------------------------------------------------
-- Everybody is drawn with a chance of at most β, and the attacker knows all records but not the draw. The target's own draw
-- mixes both lives, so with E = e^ε - 1 and theorem A at p = β, and k - known for k:
--     right = β A_right(1 + E/β),     left = a A_left(β e^ε/a),     a = β - (1 - β) E.
-- Both growths are lowered, and a is raised, by more than their rounding: A falls with g.

CREATE OR REPLACE MACRO _pkdp_lowered(growth, share) AS greatest(1, growth / (1 + share * (1 + ln(greatest(growth, 1)))));

CREATE OR REPLACE MACRO _pkdp_sampled(k, share, epsilon, known) AS
CASE WHEN k - known <= 1 THEN 1e0 ELSE list_transform(
    [_pkdp_expm1(epsilon)],
    lambda rise: list_transform(
        [{
            present: least(1 + rise / share, 1e260), drawn: share * (1 + rise),
            rest: CASE WHEN (1 - share) * rise > (1 + 1e-14) * share THEN 0e0
                ELSE greatest(share - (1 - share) * rise, 0) + 1e-14 * share + least(2e-15, share) END
        }],
        lambda mixed: least(1, 1e-290 + (1 + 1e-14) * greatest(
            share * _pkdp_right(k - known - 1, share, _pkdp_lowered(mixed.present, 1e-14)),
            CASE WHEN mixed.rest = 0 THEN 0e0 ELSE mixed.rest * _pkdp_left(
                k - known - 1, share,
                _pkdp_lowered(mixed.drawn / mixed.rest, 1e-14 * share / mixed.rest + 2e-15 / greatest(mixed.rest, 1e-12))
            ) END
        ))
    )[1]
)[1] END;

CREATE OR REPLACE MACRO pkdp_sampled_delta(k, sampled, epsilon, known := 0) AS
list_transform(
    [{
        k: _pkdp_whole('k', k, 1, 1000), share: _pkdp_share('sampled', sampled),
        epsilon: least(_pkdp_at_least_0('epsilon', epsilon), 600), known: _pkdp_whole('known', known, 0, 1000000000)
    }],
    lambda given: _pkdp_sampled(given.k, given.share, given.epsilon, given.known)
)[1];

CREATE OR REPLACE MACRO pkdp_sampled_epsilon(k, sampled, delta, known := 0) AS
list_transform(
    [{
        k: _pkdp_whole('k', k, 1, 1000), share: _pkdp_share('sampled', sampled), target: _pkdp_target(delta),
        known: _pkdp_whole('known', known, 0, 1000000000)
    }],
    lambda given: list_reduce(_pkdp_steps(), lambda kept, step: CASE
        WHEN _pkdp_sampled(given.k, given.share, least(_pkdp_stepped(kept, step), 600), given.known) <= given.target
        THEN _pkdp_stepped(kept, step) ELSE kept
    END)
)[1];

-- Noise ---------------------------------------------------------------------------------------------------------------
-- Two-sided geometric noise of ε0, against anybody: each of c changed numbers has a loss of ε0 or -ε0. Only the outcome where
-- all c have ε0 exceeds an ε ≥ 0 for c ≤ 2, so with α = e^-ε0 δ = (1 - e^(ε - c ε0))/(1 + α)^c up to c ε0, then 0.

CREATE OR REPLACE MACRO _pkdp_noise(noise, changes, epsilon) AS
CASE WHEN epsilon >= changes * noise THEN 0e0 ELSE least(
    1, 1e-290 + (1 + 2e-12) * -_pkdp_expm1(greatest(epsilon - changes * noise, -700)) / pow(1 + exp(-noise), changes)
) END;

CREATE OR REPLACE MACRO pkdp_noise_delta(noise, epsilon, protects := 'presence') AS
list_transform(
    [{
        noise: _pkdp_noise_size(noise), epsilon: _pkdp_at_least_0('epsilon', epsilon),
        changes: CASE _pkdp_choice('protects', protects, 'presence', 'value') WHEN 'value' THEN 2 ELSE 1 END
    }],
    lambda given: _pkdp_noise(given.noise, given.changes, given.epsilon)
)[1];

CREATE OR REPLACE MACRO pkdp_noise_epsilon(noise, delta, protects := 'presence') AS
list_transform(
    [{
        noise: _pkdp_noise_size(noise), target: _pkdp_target(delta),
        changes: CASE _pkdp_choice('protects', protects, 'presence', 'value') WHEN 'value' THEN 2 ELSE 1 END
    }],
    lambda given: least(given.changes * given.noise, list_reduce(_pkdp_steps(), lambda kept, step: CASE
        WHEN _pkdp_noise(given.noise, given.changes, _pkdp_stepped(kept, step)) <= given.target
        THEN _pkdp_stepped(kept, step) ELSE kept
    END))
)[1];
