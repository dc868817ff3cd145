-- pkdp_delta: the certified δ at an ε, of publishing with a mechanism, against an attacker. A scalar;
-- no data are read.
--
--     SELECT pkdp_delta('histogram', k := 20, p_max := 0.1, epsilon := 1);
--     SELECT k, pkdp_delta('histogram', k := k, p_max := 0.1, epsilon := 1) AS delta FROM range(10, 500) t(k);
--     SELECT pkdp_delta('count', noise := 0.5, epsilon := 1);
--
-- Returns a DOUBLE. Arguments may be columns; equal rows are computed once. NULL means that an argument is not given.
--
-- mechanism                                    'histogram', 'count' or 'sum'
-- epsilon                                      needed
-- k, noise, release_threshold, k_complement,
-- cells_per_unit, below, display               what the mechanism does; see pkdp_histogram and pkdp_count; below :=
--                                              'noise_from_1' where cells are found in the data
-- bounds, cells_found                          of a sum: the least and the most that a person adds, as [0, 5]; whether
--                                              cells are found in the data
-- protects                                     'presence' (default) or 'value'
-- p_max, p_min, p_max_between                  what the attacker is unsure of: probabilities
-- unknown, unknown_max, known                  whom the attacker knows: numbers of people
-- influence                                    'passive' (default) or 'active'
-- independent_cells                            whether a person's cells are independent of one another; false by default
-- sampled                                      a secret sample: the most that anybody's chance to be drawn is
-- total_known                                  true: the exact number of people is published, or known
--
-- Guarantee: the number that pkdp.certify(…).delta(epsilon) gives, rounded outward. Where nothing can be certified
-- it says so: δ = 1. Malformed arguments are errors.
CREATE OR REPLACE MACRO pkdp_delta(
    mechanism,
    epsilon := NULL, k := NULL, k_complement := NULL, noise := NULL, release_threshold := NULL, protects := NULL,
    p_max := NULL, p_min := NULL, p_max_between := NULL, unknown := NULL, unknown_max := NULL, known := NULL,
    influence := NULL, cells_per_unit := NULL, independent_cells := NULL, total_known := NULL,
    below := NULL, display := NULL, sampled := NULL, bounds := NULL, cells_found := NULL
) AS
-- Whole numbers stand within coalesce, which makes a text of a quoted one: DuckDB would round '20.7' to a k of 21.
pkdp_certified(
    'delta', epsilon, mechanism, coalesce(k, NULL), coalesce(k_complement, NULL), noise,
    coalesce(release_threshold, NULL), below, to_json(display)::VARCHAR, coalesce(cells_per_unit, NULL),
    to_json(bounds)::VARCHAR, cells_found,
    protects, p_max, p_min, p_max_between, coalesce(unknown, NULL), coalesce(unknown_max, NULL), coalesce(known, NULL),
    influence, independent_cells, sampled, total_known
);
