-- Retention of finished jobs, and indexes for lists of rare states.

-- Jobs that neither wait for a worker nor run. Jobs on the hot path never enter these indexes.
CREATE INDEX milepost_live_aside ON milepost_live (state, id) WHERE state <> 'pending' AND state <> 'running';
CREATE INDEX milepost_ended_aside ON milepost_ended (state, id) WHERE state <> 'succeeded';

-- The end time of a job whose other rows have been deleted; NULL while they exist.
ALTER TABLE milepost_job_key ADD COLUMN job_ended_at_ms INTEGER;
CREATE INDEX milepost_job_key_due ON milepost_job_key (job_ended_at_ms) WHERE job_ended_at_ms IS NOT NULL;

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
