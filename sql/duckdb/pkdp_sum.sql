-- pkdp_sum: the sum of a column of whole numbers with noise, in each cell or in all, published.
--
--     FROM pkdp_sum('events', 'visits', by := 'country', bounds := [0, 5], noise := 1.0, domain := ['US', 'NO', 'DE']);
--     FROM pkdp_sum('events', 'visits', by := 'country', bounds := [0, 5], noise := 1.0, release_threshold := 60);
--     FROM pkdp_sum('events', 'visits', bounds := [0, 5], noise := 1.0, filter := 'age >= 18');
--     FROM pkdp_sum('events', NULL, rows := 'count', by := 'country', bounds := [0, 10], noise := 1.0, domain := ['US']);
--
-- Returns one row per published cell, or one in all: the by-columns as of pkdp_histogram, and sum (BIGINT, which may be
-- negative; NULL where a declared cell is suppressed).
--
-- column_name        the summed column: of a type of whole numbers, whatever it holds. NULL adds nothing, and a number
--                    beyond ±10^12 counts as that.
-- rows               'count' with NULL as the column: a person adds the number of her rows
-- by                 a column, or a list of columns, that name the cells; without it, one sum of everybody
-- bounds             [least, most]: what a person adds to a cell, the sum over her rows there, is clamped to them: a public
--                    rule, fixed before anybody looks at the data
-- noise              the ε of two-sided geometric noise in every cell, for what one person can add
-- release_threshold  a cell is published only when its noised sum reaches it; needed without a domain
--
-- All others, and the guarantee: as of pkdp_histogram.
CREATE OR REPLACE MACRO pkdp_sum(
    table_name, column_name,
    "by" := NULL, bounds := NULL, noise := NULL, "rows" := NULL, filter := NULL, domain := NULL,
    release_threshold := NULL, protects := NULL, period := NULL, missing_unit := NULL, one_cell := NULL,
    order_by := NULL, undeclared := NULL, cells_per_unit := NULL
) AS TABLE
FROM query(pkdp_plan(to_json({
    "table": table_name, "sum": column_name, "by": "by", bounds: bounds, noise: noise, "rows": "rows", filter: filter,
    domain: to_json(domain)::VARCHAR, release_threshold: release_threshold, protects: protects, period: period,
    missing_unit: missing_unit, one_cell: one_cell, order_by: order_by, undeclared: undeclared,
    cells_per_unit: cells_per_unit,
    database: current_database(), schema: current_schema(), schemas: current_schemas(false)
})::VARCHAR));
