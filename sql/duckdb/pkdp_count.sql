CREATE OR REPLACE MACRO pkdp_count(
    table_name,
    filter := NULL, k := NULL, k_complement := NULL, noise := NULL, release_threshold := NULL, period := NULL,
    missing_unit := NULL
) AS
pkdp_release(to_json({
    kind: 'count', "table": table_name, filter: filter, k: k, k_complement: k_complement, noise: noise,
    release_threshold: release_threshold, period: period, missing_unit: missing_unit,
    database: current_database(), schema: current_schema()
})::VARCHAR)[1].count;

CREATE OR REPLACE MACRO pkdp_count(
    table_name,
    filter := NULL, k := NULL, k_complement := NULL, noise := NULL, release_threshold := NULL, period := NULL,
    missing_unit := NULL
) AS TABLE
SELECT pkdp_release(to_json({
    kind: 'count', "table": table_name, filter: filter, k: k, k_complement: k_complement, noise: noise,
    release_threshold: release_threshold, period: period, missing_unit: missing_unit,
    database: current_database(), schema: current_schema()
})::VARCHAR)[1].count AS count;
