-- Bulk jobs whose targets come from files.

-- The columns of the file that every run of the bulk job is started with; NULL: the targets are in tables.
ALTER TABLE milepost_bulk_definition ADD COLUMN columns TEXT;

-- A file whose rows are the targets of a run.
-- started_at_ms: NULL while the file is being staged. touched_at_ms: the last time at which a row was staged, the run
-- was started, or retention deleted a run over the file.
CREATE TABLE milepost_bulk_file (
    run           BLOB    NOT NULL PRIMARY KEY,
    name          TEXT    NOT NULL,
    rows          INTEGER NOT NULL DEFAULT 0,
    started_at_ms INTEGER,
    touched_at_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The rows of a file, numbered from 1. Each contains the columns that the bulk job declares, as JSON.
CREATE TABLE milepost_bulk_target (
    run BLOB    NOT NULL,
    n   INTEGER NOT NULL,
    row TEXT    NOT NULL,
    PRIMARY KEY (run, n)
) STRICT, WITHOUT ROWID;

-- Finds out whether a run, or a run that retries its failures, still needs the file.
CREATE INDEX milepost_bulk_origin ON milepost_bulk (origin);
