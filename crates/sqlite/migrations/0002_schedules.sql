-- Schedules: work that comes back. A tick enqueues jobs; each job says which tick it stands for.

ALTER TABLE milepost_job ADD COLUMN nominal_at_ms INTEGER;

-- spec: a cron expression by the clock of time_zone, or @every and an interval.
-- version: rises with every change; a tick happens only on the version it was decided on. It starts at the time of
-- creation, so that one that is removed and made again never has an old one.
-- next_at_ms: the first tick that nobody has seen to.
-- fired, dropped: how many jobs its ticks made, and how many missed ticks made none.
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
    dropped          INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;

CREATE INDEX milepost_schedule_due ON milepost_schedule (next_at_ms) WHERE paused_at_ms IS NULL;
