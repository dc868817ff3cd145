CREATE OR REPLACE MACRO pkdp_releases() AS TABLE
SELECT entry.id, entry.table_name, entry.label, entry.period, entry.row_count, entry.sentence, entry.certificate
FROM (SELECT unnest(pkdp_published(0)) AS entry);
