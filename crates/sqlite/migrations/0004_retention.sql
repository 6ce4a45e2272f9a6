-- Retention: what is over is forgotten in time; and lists of what is rare read only that.

-- What neither waits for a worker nor runs: the hot way of a job never enters it.
CREATE INDEX milepost_live_aside ON milepost_live (state, id) WHERE state <> 'pending' AND state <> 'running';
CREATE INDEX milepost_ended_aside ON milepost_ended (state, id) WHERE state <> 'succeeded';

-- When the job ended whose rows are gone; NULL while they are there.
ALTER TABLE milepost_job_key ADD COLUMN job_ended_at_ms INTEGER;
CREATE INDEX milepost_job_key_due ON milepost_job_key (job_ended_at_ms) WHERE job_ended_at_ms IS NOT NULL;

-- How far each sort of retention has read history, which lies in the order of time: the last entry of a job says
-- how it ended and when, so that the end of a job needs no index of its own.
CREATE TABLE milepost_retention (
    sort TEXT    NOT NULL PRIMARY KEY,
    pos  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

INSERT INTO milepost_retention (sort, pos) VALUES ('succeeded', 0), ('canceled', 0), ('failed', 0), ('history', 0);

-- Upkeep that one process at a time does, and until when it is nobody else's turn.
CREATE TABLE milepost_turn (
    name     TEXT    NOT NULL PRIMARY KEY,
    until_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

INSERT INTO milepost_turn (name, until_ms) VALUES ('retention', 0);
