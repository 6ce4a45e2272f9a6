-- Schedules. A tick enqueues jobs; nominal_at_ms of such a job is the time of its tick.

-- spec: a cron expression in the time zone time_zone, or @every with an interval.
-- version: incremented by every change; a tick is applied only to the version that it was computed from. It starts at the creation time, so
-- that a schedule that is removed and created again never gets a version that was used before.
-- next_at_ms: the first tick that has not been processed.
-- fired, dropped: the number of jobs that ticks created, and of missed ticks that created none.
-- dag: the DAG of which the schedule starts batches. payload is then their input, and the other job columns are not used.
-- refused_at_ms, refusal: the last tick, if its batch could not be started, and the reason.
CREATE TABLE milepost_schedule (
    name             TEXT    NOT NULL PRIMARY KEY,
    spec             TEXT    NOT NULL,
    time_zone        TEXT    NOT NULL,
    kind             TEXT    NOT NULL,
    queue            TEXT    NOT NULL,
    payload          TEXT    NOT NULL,
    priority         INTEGER NOT NULL,
    max_attempts     INTEGER NOT NULL,
    group_key        TEXT,
    timeout_ms       INTEGER,
    misfire          TEXT    NOT NULL,
    misfire_max      INTEGER,
    misfire_grace_ms INTEGER NOT NULL,
    source           TEXT    NOT NULL,
    version          INTEGER NOT NULL,
    paused_at_ms     INTEGER,
    next_at_ms       INTEGER,
    last_at_ms       INTEGER,
    fired            INTEGER NOT NULL DEFAULT 0,
    dropped          INTEGER NOT NULL DEFAULT 0,
    dag              TEXT,
    refused_at_ms    INTEGER,
    refusal          TEXT
) STRICT, WITHOUT ROWID;

CREATE INDEX milepost_schedule_due ON milepost_schedule (next_at_ms) WHERE paused_at_ms IS NULL;
