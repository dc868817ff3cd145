-- pkdp_histogram: how many people are in each cell, published.
--
--     FROM pkdp_histogram('events', 'country', k := 20);
--     FROM pkdp_histogram('events', ['country', 'flag'], k := 20, filter := 'age >= 18 AND country <> ''NO''');
--     FROM pkdp_histogram('events', 'country', k := 20, domain := ['US', 'NO', 'DE'], undeclared := 'absent');
--     FROM pkdp_histogram('events', 'country', k := 5, noise := 0.1, release_threshold := 30, period := '2013-W01');
--     FROM pkdp_histogram('events', 'country', k := 30, noise := 1.0, below := 'noise', domain := ['US', 'NO', 'DE']);
--     FROM pkdp_histogram('events', 'country', k := 8, display := {'rounding': 5});
--
-- Returns one row per published cell: the by-columns, under their own names and types (an ENUM, which lists values that
-- nobody may have, as VARCHAR), count (BIGINT; NULL where a declared cell is suppressed) and, only with below := 'noise',
-- exact (BOOLEAN: whether the count is exact).
--
-- table_name         a table or view in the catalog: 'events', 'schema.events' or 'database.schema.events'. Temporary
--                    tables, registered frames, Python variables, files and what is not committed are not read.
-- by_columns         a column, or a list of columns, that name the cells; NULL is a cell of its own
-- k                  a cell is published only when at least k people are in it; needed without a domain
-- filter             which rows count: a condition in SQL, of columns, constants, comparisons, AND, OR, NOT, IN, BETWEEN,
--                    LIKE, IS NULL, and year, month, day and isodow of dates; where it is unknown (NULL), the row does
--                    not count
-- noise              the ε of two-sided geometric noise in every cell
-- domain             the public cells, in the order of publication: a list of values; for several columns a list of
--                    rows [('US', true), ('NO', false)], or a struct of lists {country: ['US', 'NO'], flag: [true]}, of
--                    which all combinations are cells. Without it, only cells that reach k appear.
-- release_threshold  a cell is published only when its noised count reaches it
-- below              'suppress' (default) or 'noise': what becomes of a cell below k. With 'noise', cells from k on are
--                    exact and smaller ones noised, and marked; release_threshold acts on the noised ones only, and is
--                    needed without a domain
-- display            how every published count is shown, after k or in its place: {'rounding': 5},
--                    {'rounding': 5, 'mode': 'down'} (or 'midpoint'), {'bands': [0, 10, 20]} (count is the first of its
--                    band), {'random_rounding': 3} or {'perturbation': [[0, 0, 1.0], …]}; or the same as JSON text
-- protects           'presence' (default) or 'value': whether somebody is there, or only in which cell
-- period             the period the data are about: a text or a DATE
-- missing_unit       'error' or 'drop': what happens to rows without a person
-- one_cell           'error', 'most_frequent', 'first' or 'hash': in which of its cells a person with several counts
--                    (of equally frequent cells in one that a hash draws)
-- order_by           a column or a list of columns, for one_cell := 'first'
-- cells_per_unit     in how many cells a person may be: with noise so many of hers that a hash draws; without noise
--                    nobody may have more, and the attacker has to say that cells are independent
-- undeclared         'error' (default) or 'absent': what happens to people whose cell is not in the domain
--
-- The person, the attacker, the ledger and defaults for period, missing_unit, one_cell and order_by were given to
-- install().
--
-- Guarantee: that of the release's certificate; pkdp_releases() has it. The same request always gets the same release,
-- charged once, however often it is asked; EXPLAIN and PREPARE publish nothing. What may not be published beside
-- what the ledger holds is an error, and nothing is published.
CREATE OR REPLACE MACRO pkdp_histogram(
    table_name, by_columns,
    k := NULL, filter := NULL, noise := NULL, domain := NULL, release_threshold := NULL, protects := NULL,
    period := NULL, missing_unit := NULL, one_cell := NULL, order_by := NULL, undeclared := NULL,
    cells_per_unit := NULL, below := NULL, display := NULL
) AS TABLE
-- pkdp_plan writes, when a statement is bound, the SELECT that calls pkdp_release when the statement runs.
FROM query(pkdp_plan(to_json({
    "table": table_name, histogram: by_columns, k: k, filter: filter, noise: noise,
    domain: to_json(domain)::VARCHAR, release_threshold: release_threshold, protects: protects, period: period,
    missing_unit: missing_unit, one_cell: one_cell, order_by: order_by, undeclared: undeclared,
    cells_per_unit: cells_per_unit, below: below, display: display,
    database: current_database(), schema: current_schema(), schemas: current_schemas(false)
})::VARCHAR));
