-- Ledger, schema 1, PostgreSQL: one chain of events for each data set, and tables derived from it.
-- Run inside the namespace pkdp, which search_path names.

CREATE TABLE schema_version (
    version INTEGER NOT NULL PRIMARY KEY
);

INSERT INTO schema_version (version) VALUES (1);

-- What happened, appended and never changed. The hash covers every column but sequence and, through
-- previous, every earlier event of the data set.
CREATE TABLE event (
    sequence    BIGINT  GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    dataset     TEXT    NOT NULL CHECK (length(dataset) > 0),
    position    BIGINT  NOT NULL CHECK (position >= 1),             -- 1, 2, … within the data set
    kind        TEXT    NOT NULL CHECK (kind IN ('reserved', 'published', 'given_back', 'recertified', 'unreadable')),
    key         TEXT    NOT NULL CHECK (length(key) > 0),           -- what was asked: the same key replays; a table
    revision    BIGINT  NOT NULL CHECK (revision >= 1),
    standing    TEXT    CHECK (standing IS NULL OR CAST(standing AS JSON) IS NOT NULL),       -- what it is about
    certificate TEXT    CHECK (certificate IS NULL OR CAST(certificate AS JSON) IS NOT NULL),
    terms       TEXT    CHECK (terms IS NULL OR CAST(terms AS JSON) IS NOT NULL),             -- evidence and budgets in force
    release_id  TEXT    CHECK (length(release_id) > 0),
    content     BYTEA,                                              -- the released bytes
    created_at  TEXT    NOT NULL,                                   -- UTC, ISO 8601; decides nothing
    previous    TEXT    NOT NULL CHECK (length(previous) = 64),
    hash        TEXT    NOT NULL UNIQUE CHECK (length(hash) = 64),
    UNIQUE (dataset, position),
    CHECK ((kind = 'reserved') = (standing IS NOT NULL)),
    CHECK ((kind = 'reserved') = (terms IS NOT NULL)),
    CHECK ((kind IN ('reserved', 'recertified')) = (certificate IS NOT NULL)),
    CHECK ((kind IN ('published', 'recertified')) = (release_id IS NOT NULL)),
    CHECK ((kind IN ('published', 'recertified')) = (content IS NOT NULL))
);

CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the ledger is append-only' USING ERRCODE = 'integrity_constraint_violation';
END;
$$;

CREATE TRIGGER event_is_never_changed BEFORE UPDATE OR DELETE ON event
    FOR EACH ROW EXECUTE FUNCTION refuse_change();

CREATE TRIGGER event_is_never_emptied BEFORE TRUNCATE ON event
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

-- Derived: the first spelling of every data set's name.
CREATE TABLE dataset (
    folded TEXT NOT NULL PRIMARY KEY CHECK (length(folded) > 0),
    name   TEXT NOT NULL UNIQUE CHECK (length(name) > 0)
);

-- Derived from the events: what became of every reservation, and all that adding up looks at.
CREATE TABLE entry (
    id          BIGINT  PRIMARY KEY REFERENCES event (sequence),    -- the event that reserved it
    dataset     TEXT    NOT NULL,
    key         TEXT    NOT NULL,
    revision    BIGINT  NOT NULL,
    state       TEXT    NOT NULL CHECK (state IN ('reserved', 'published', 'given_back')),
    published   BIGINT  REFERENCES event (sequence),                -- the event that published it
    certificate BIGINT  NOT NULL REFERENCES event (sequence),       -- the event that holds its latest certificate
    content     BIGINT  REFERENCES event (sequence),                -- the event that holds its latest bytes
    counts      BIGINT  NOT NULL REFERENCES event (sequence),       -- the event since which it counts as it does
    part        TEXT    NOT NULL CHECK (length(part) = 64),         -- sha256 of what its certificates follow from
    unit        TEXT    NOT NULL,                                   -- JSON list of the privacy unit's columns, sorted
    kind        TEXT    NOT NULL CHECK (kind IN ('total', 'exact count', 'noiseless', 'pure noise', 'noised')),
    first_day   BIGINT,                                             -- days since 0001-01-01, which is 1;
    last_day    BIGINT,                                             -- NULL for a period without dates,
    label       TEXT,                                               -- whose folded text is here instead
    source      TEXT,                                               -- the table of the data set
    time_zone   TEXT,                                               -- where its days begin and end
    told        BIGINT  NOT NULL CHECK (told IN (0, 1)),            -- its attackers know who is there
    leaks       BIGINT  NOT NULL CHECK (leaks IN (0, 1)),           -- something leaks beside it
    CHECK ((state = 'published') = (published IS NOT NULL)),
    CHECK ((state = 'published') = (content IS NOT NULL)),
    CHECK ((first_day IS NULL) = (last_day IS NULL)),
    CHECK ((first_day IS NULL) = (label IS NOT NULL))
);

CREATE UNIQUE INDEX entry_key ON entry (dataset, key, revision) WHERE state <> 'given_back';
CREATE INDEX entry_dataset ON entry (dataset, id);
CREATE INDEX entry_last_day ON entry (dataset, last_day);
CREATE INDEX entry_label ON entry (dataset, label);
CREATE INDEX entry_kind ON entry (dataset, kind);
CREATE INDEX entry_part ON entry (dataset, part, unit);
CREATE INDEX entry_leaks ON entry (dataset, unit) WHERE leaks = 1;
