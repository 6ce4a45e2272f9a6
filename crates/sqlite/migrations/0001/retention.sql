-- Retention of finished jobs.

-- The position up to which each type of retention has read history, which is in time order. The last entry of a job contains its final
-- state and its end time, so no separate index on the end of jobs is needed.
CREATE TABLE milepost_retention (
    sort TEXT    NOT NULL PRIMARY KEY,
    pos  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

INSERT INTO milepost_retention (sort, pos) VALUES ('succeeded', 0), ('canceled', 0), ('failed', 0), ('history', 0);

-- Maintenance that one process at a time performs; no other process may start before until_ms.
CREATE TABLE milepost_turn (
    name     TEXT    NOT NULL PRIMARY KEY,
    until_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

INSERT INTO milepost_turn (name, until_ms) VALUES ('retention', 0);
