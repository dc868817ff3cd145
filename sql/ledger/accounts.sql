-- What the ledger's accounts know, derived from the events: which releases stand together and what they add up
-- to. Loaded after the other tables of schema 1, in SQLite and PostgreSQL alike.

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
    days      BIGINT,
    label     TEXT,                                  -- whose folded text is here instead
    component BIGINT NOT NULL,                       -- component.id
    standing  TEXT   NOT NULL
);

CREATE INDEX holding_component ON holding (component, unit, part);
CREATE INDEX holding_first_day ON holding (dataset, first_day);
CREATE INDEX holding_label ON holding (dataset, label);
CREATE INDEX holding_days ON holding (dataset, days);
CREATE INDEX holding_kind ON holding (dataset, kind);
CREATE INDEX holding_unit ON holding (dataset, unit);

-- Releases whose periods overlap, each leading to the next.
CREATE TABLE component (
    id        BIGINT NOT NULL PRIMARY KEY,           -- its smallest entry
    dataset   TEXT   NOT NULL,
    first_day BIGINT,                                -- of its dated periods together
    last_day  BIGINT,
    label     TEXT,                                  -- where none is dated: the one label they share
    dated     BIGINT NOT NULL,                       -- how many of its releases have dates
    undated   BIGINT NOT NULL,
    units     BIGINT NOT NULL                        -- how many different units they are about
);

CREATE INDEX component_last_day ON component (dataset, last_day);
CREATE INDEX component_label ON component (dataset, label);
CREATE INDEX component_undated ON component (dataset, undated);

-- The running state: how many components add up to the same, for each unit.
CREATE TABLE tally (
    dataset TEXT   NOT NULL,
    unit    TEXT   NOT NULL,
    sha256  TEXT   NOT NULL,                         -- of bundle
    bundle  TEXT   NOT NULL,                         -- JSON: its company, and how often each part occurs
    times   BIGINT NOT NULL CHECK (times >= 1),
    PRIMARY KEY (dataset, unit, sha256)
);
