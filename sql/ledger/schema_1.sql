-- Ledger, schema 1: one row per published release, appended and never changed.
-- application_id is "pkdp" in ASCII, so that another SQLite file is never taken for a ledger.
PRAGMA application_id = 1886086256;
PRAGMA user_version = 1;

CREATE TABLE entry (
    sequence    INTEGER PRIMARY KEY AUTOINCREMENT,
    key         TEXT    NOT NULL UNIQUE CHECK (length(key) > 0),  -- what was asked: the same key replays
    dataset     TEXT    NOT NULL CHECK (length(dataset) > 0),
    unit        TEXT    NOT NULL CHECK (json_valid(unit)),        -- JSON list of the privacy unit's columns
    period      TEXT    NOT NULL CHECK (length(period) > 0),
    label       TEXT    NOT NULL,
    noiseless   INTEGER NOT NULL CHECK (noiseless IN (0, 1)),     -- 0: noised, with a finite worst case
    state       TEXT    NOT NULL CHECK (state = 'published'),
    release_id  TEXT    NOT NULL CHECK (length(release_id) > 0),
    certificate TEXT    NOT NULL CHECK (json_valid(certificate)),
    content     BLOB    NOT NULL CHECK (typeof(content) = 'blob'), -- the released bytes
    created_at  TEXT    NOT NULL                                  -- UTC, ISO 8601
);

CREATE INDEX entry_dataset ON entry (dataset, sequence);

CREATE TRIGGER entry_is_never_changed BEFORE UPDATE ON entry
BEGIN
    SELECT RAISE(ABORT, 'the ledger is append-only');
END;

CREATE TRIGGER entry_is_never_removed BEFORE DELETE ON entry
BEGIN
    SELECT RAISE(ABORT, 'the ledger is append-only');
END;
