-- Targets of bulk jobs that come from files.

-- The columns of the file that each run of a bulk job is started with; NULL: its targets are in tables.
ALTER TABLE milepost_bulk_definition ADD COLUMN columns TEXT;

-- A file whose rows are the targets of a run.
-- started_at_ms: NULL while it is being staged. touched_at_ms: when somebody last wrote to it.
CREATE TABLE milepost_bulk_file (
    run           BLOB    NOT NULL PRIMARY KEY,
    name          TEXT    NOT NULL,
    rows          INTEGER NOT NULL DEFAULT 0,
    started_at_ms INTEGER,
    touched_at_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Its rows, numbered from 1; each has the columns that the bulk job declares, as JSON.
CREATE TABLE milepost_bulk_target (
    run BLOB    NOT NULL,
    n   INTEGER NOT NULL,
    row TEXT    NOT NULL,
    PRIMARY KEY (run, n)
) STRICT, WITHOUT ROWID;

-- Whether a run still needs its file, or one that tries its failures again.
CREATE INDEX milepost_bulk_origin ON milepost_bulk (origin);
