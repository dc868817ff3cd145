-- What the ledger's accounts know, derived from the events: which releases are charged, and with which
-- certificates. Loaded after the other tables of schema 1, in SQLite and PostgreSQL alike.

-- Every different certificate once, without the facts of its publication: mechanism, attacker, what is protected.
CREATE TABLE part (
    sha256      TEXT NOT NULL PRIMARY KEY CHECK (length(sha256) = 64),
    description TEXT NOT NULL
);

-- One row for every release that is charged and not given back.
CREATE TABLE holding (
    entry     BIGINT NOT NULL PRIMARY KEY,
    dataset   TEXT   NOT NULL,
    unit      TEXT   NOT NULL,                       -- JSON list of the privacy unit's columns, sorted
    kind      TEXT   NOT NULL CHECK (kind IN ('exact count', 'noiseless', 'pure noise', 'noised')),
    part      TEXT   NOT NULL,                       -- part.sha256
    first_day BIGINT,                                -- days since 0001-01-01, which is 1;
    last_day  BIGINT,                                -- NULL for a period without dates,
    label     TEXT,                                  -- whose folded text is here instead
    standing  TEXT   NOT NULL
);

CREATE INDEX holding_dataset ON holding (dataset, entry);
CREATE INDEX holding_last_day ON holding (dataset, last_day);
CREATE INDEX holding_label ON holding (dataset, label);
CREATE INDEX holding_kind ON holding (dataset, kind);
CREATE INDEX holding_part ON holding (dataset, unit, part);
