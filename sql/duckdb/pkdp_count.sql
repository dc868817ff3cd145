-- pkdp_count: how many people satisfy a condition, published. A scalar, and a table of one row.
--
--     SELECT pkdp_count('events', filter := 'flag', k := 20);
--     FROM pkdp_count('events', filter := 'age BETWEEN 18 AND 30', noise := 0.5, period := '2013-W01');
--     FROM pkdp_count('events', protects := 'value');
--
-- Returns a BIGINT (the table: a column count), NULL where it is suppressed. A person with several rows satisfies the
-- condition when any of them does.
--
-- table_name, filter, noise, release_threshold, below, display, period, missing_unit: as of pkdp_histogram. Without filter: all
-- people. With below := 'noise' the table says in a column exact whether the count is exact; the scalar cannot.
-- k                  published only when at least k people satisfy the condition
-- k_complement       published only when at least so many people do not; takes the number of people as public
-- protects           'value': the exact number of all people, published as what an attacker is declared to know
--                    (Leakage.total()); without k, noise and filter
--
-- Guarantee: that of the release's certificate; pkdp_releases() has it. The same request always gets the same release,
-- charged once, however often it is asked and whatever the number of rows it is asked for; EXPLAIN and PREPARE publish
-- nothing.
-- DuckDB binds a scalar macro when it is made, when its arguments are no constants yet: it is made over this stand-in.
CREATE OR REPLACE MACRO pkdp_count(
    table_name,
    filter := NULL, k := NULL, k_complement := NULL, noise := NULL, release_threshold := NULL, protects := NULL,
    period := NULL, missing_unit := NULL, below := NULL, display := NULL
) AS TABLE
SELECT NULL::BIGINT AS count, NULL::BOOLEAN AS exact;

CREATE OR REPLACE MACRO pkdp_count(
    table_name,
    filter := NULL, k := NULL, k_complement := NULL, noise := NULL, release_threshold := NULL, protects := NULL,
    period := NULL, missing_unit := NULL, below := NULL, display := NULL
) AS (
    SELECT count FROM pkdp_count(
        table_name,
        filter := filter, k := k, k_complement := k_complement, noise := noise, release_threshold := release_threshold,
        protects := protects, period := period, missing_unit := missing_unit, below := below,
        display := display
    )
);

-- query() takes constants only: no argument can come from data.
CREATE OR REPLACE MACRO pkdp_count(
    table_name,
    filter := NULL, k := NULL, k_complement := NULL, noise := NULL, release_threshold := NULL, protects := NULL,
    period := NULL, missing_unit := NULL, below := NULL, display := NULL
) AS TABLE
FROM query(pkdp_plan(to_json({
    count: true, "table": table_name, filter: filter, k: k, k_complement: k_complement, noise: noise,
    release_threshold: release_threshold, protects: protects, period: period, missing_unit: missing_unit,
    below: below, display: display,
    database: current_database(), schema: current_schema(), schemas: current_schemas(false)
})::VARCHAR));
