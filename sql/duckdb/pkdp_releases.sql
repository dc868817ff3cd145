-- pkdp_releases: what the ledger behind this connection holds, oldest first. All of it is public; no data are read.
--
--     SELECT label, period, sentence FROM pkdp_releases();
--     SELECT certificate ->> '$.attacker.p_max' AS p_max FROM pkdp_releases();
--
-- Returns one row per release:
-- id           sha256 of the published table and its certificate
-- table_name   the table it was made from; NULL where the release was not made in SQL
-- label        what was published
-- period       the period the data are about
-- row_count    how many rows the published table has
-- sentence     the guarantee in words, at δ = 1e-6
-- certificate  the certificate as JSON
-- epsilon      the ε at δ = 1e-6, infinite where nothing is promised
-- cells        the published rows as JSON: keys, count (or sum) and whether it is marked exact
--
-- A statement that also publishes may or may not list what it publishes itself.
CREATE OR REPLACE MACRO pkdp_releases() AS TABLE
SELECT entry.id, entry.table_name, entry.label, entry.period, entry.row_count, entry.sentence, entry.certificate,
    entry.epsilon, entry.cells
FROM (SELECT unnest(pkdp_published(0)) AS entry);
