CREATE OR REPLACE MACRO pkdp_epsilon(
    mechanism,
    delta := NULL, k := NULL, k_complement := NULL, noise := NULL, release_threshold := NULL, protects := NULL,
    p_max := NULL, p_min := NULL, p_max_between := NULL, unknown := NULL, unknown_max := NULL, known := NULL,
    influence := NULL
) AS
pkdp_certified(
    'epsilon', delta, mechanism, k, k_complement, noise, release_threshold, protects,
    p_max, p_min, p_max_between, unknown, unknown_max, known, influence
);
