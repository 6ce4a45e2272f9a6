-- Bulk jobs: definitions, the progress of each run, settings of runs, failed targets, and targets from files.

-- The definitions. The name is also the kind of the jobs. Workers use their own configuration; this table is for lists.
-- columns: the columns of the file that every run is started with; NULL: the targets are in tables.
-- place: the database of the targets, if it is not this one: name and address, without secrets.
CREATE TABLE milepost_bulk_definition (
    name           TEXT    NOT NULL PRIMARY KEY,
    type           TEXT,
    category       TEXT,
    group_key      TEXT    NOT NULL,
    queue          TEXT    NOT NULL,
    priority       INTEGER NOT NULL,
    max_attempts   INTEGER NOT NULL,
    chunk_ms       INTEGER NOT NULL,
    chunk_rows_min INTEGER NOT NULL,
    chunk_rows_max INTEGER NOT NULL,
    rows_per_s     REAL,
    duty           REAL    NOT NULL,
    failures_max   INTEGER NOT NULL,
    then_name      TEXT,
    effects        TEXT    NOT NULL,
    fingerprint    TEXT    NOT NULL,
    source         TEXT    NOT NULL,
    updated_at_ms  INTEGER NOT NULL,
    columns        TEXT,
    place          TEXT
) STRICT, WITHOUT ROWID;

-- Progress of a run.
-- token: the fence. A worker that takes the run over raises it to its run token; no chunk with a lower token can commit.
-- origin: the run that owns the targets: this run, or the run whose failures it retries.
-- snapshot: the transactions that were open on the target database when the run began, as a snapshot of that database. The set of targets is
-- final when all of them have ended.
CREATE TABLE milepost_bulk (
    job_id            BLOB    NOT NULL PRIMARY KEY,
    origin            BLOB    NOT NULL,
    retry_of          BLOB,
    token             INTEGER NOT NULL DEFAULT 0,
    fingerprint       TEXT,
    surveyed_at_ms    INTEGER,
    upper_key         TEXT,
    total             INTEGER,
    total_exact       INTEGER,
    cursor_key        TEXT,
    done              INTEGER NOT NULL DEFAULT 0,
    failed            INTEGER NOT NULL DEFAULT 0,
    chunks            INTEGER NOT NULL DEFAULT 0,
    -- The value of chunks when the current run token took the run over. A higher value of chunks means progress since then.
    chunks_before     INTEGER NOT NULL DEFAULT 0,
    chunk_rows        INTEGER,
    chunk_ms          INTEGER,
    busy_ms           INTEGER NOT NULL DEFAULT 0,
    held_ms           INTEGER NOT NULL DEFAULT 0,
    throttle          TEXT,
    throttle_since_ms INTEGER,
    started_at_ms     INTEGER,
    updated_at_ms     INTEGER,
    ended_at_ms       INTEGER,
    snapshot          TEXT
) STRICT, WITHOUT ROWID;

-- Settings of a run, made by operators.
-- given: the number of its failures that were assigned to runs that retry them.
CREATE TABLE milepost_bulk_setting (
    job_id         BLOB    NOT NULL PRIMARY KEY,
    rows_per_s     REAL,
    duty           REAL,
    chunk_ms       INTEGER,
    chunk_rows_min INTEGER,
    chunk_rows_max INTEGER,
    given          INTEGER NOT NULL DEFAULT 0,
    set_at_ms      INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Targets that could not be applied. A retried target belongs to the run that retries it and is deleted with that run.
CREATE TABLE milepost_bulk_failure (
    pos        INTEGER PRIMARY KEY,
    job_id     BLOB    NOT NULL,
    key        TEXT    NOT NULL,
    code       TEXT    NOT NULL,
    message    TEXT    NOT NULL,
    at_ms      INTEGER NOT NULL,
    retried_by BLOB
) STRICT;

CREATE INDEX milepost_bulk_failure_job ON milepost_bulk_failure (job_id, pos);
CREATE INDEX milepost_bulk_failure_own ON milepost_bulk_failure (job_id, pos) WHERE retried_by IS NULL;
CREATE INDEX milepost_bulk_failure_retried ON milepost_bulk_failure (retried_by, pos) WHERE retried_by IS NOT NULL;

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
