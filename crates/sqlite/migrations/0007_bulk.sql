-- Bulk jobs: what they are, how far each run is, what it may take, and which of its targets failed.

-- What may be started. Its name is the kind of its jobs. Workers go by their own configuration; this is for lists.
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
    updated_at_ms  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- How far a run is.
-- token: the fence; a worker that takes the run over raises it to its own, and no chunk with a lower one commits.
-- origin: the run whose targets these are: itself, or the one whose failures it tries again.
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
    -- Chunks when the run token that holds it took it over: it has progressed since when there are more.
    chunks_before     INTEGER NOT NULL DEFAULT 0,
    chunk_rows        INTEGER,
    chunk_ms          INTEGER,
    busy_ms           INTEGER NOT NULL DEFAULT 0,
    held_ms           INTEGER NOT NULL DEFAULT 0,
    throttle          TEXT,
    throttle_since_ms INTEGER,
    started_at_ms     INTEGER,
    updated_at_ms     INTEGER,
    ended_at_ms       INTEGER
) STRICT, WITHOUT ROWID;

-- What operators set for a run.
-- given: how many of its failures went to runs that try them again.
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

-- Targets that could not be applied. One that is tried again belongs to the run that does so, and is forgotten with it.
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
