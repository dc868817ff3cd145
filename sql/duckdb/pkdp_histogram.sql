CREATE OR REPLACE MACRO pkdp_histogram(
    table_name, by_columns,
    k := NULL, filter := NULL, noise := NULL, domain := NULL, release_threshold := NULL, protects := NULL,
    period := NULL, missing_unit := NULL, one_cell := NULL, order_by := NULL, undeclared := NULL
) AS TABLE
FROM query(pkdp_plan(to_json({
    kind: 'histogram', "table": table_name, "by": by_columns, k: k, filter: filter, noise: noise,
    domain: to_json(domain)::VARCHAR, release_threshold: release_threshold, protects: protects, period: period,
    missing_unit: missing_unit, one_cell: one_cell, order_by: order_by, undeclared: undeclared,
    database: current_database(), schema: current_schema()
})::VARCHAR));
