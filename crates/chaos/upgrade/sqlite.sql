-- A migration of the next version, for scripts/upgrade: what migrations usually do, in a form that allows programs of the version before.
ALTER TABLE milepost_live ADD COLUMN next_note TEXT;
ALTER TABLE milepost_job ADD COLUMN next_note TEXT NOT NULL DEFAULT '';
ALTER TABLE milepost_history ADD COLUMN next_note TEXT;
ALTER TABLE milepost_event ADD COLUMN next_note TEXT;
ALTER TABLE milepost_batch_task ADD COLUMN next_note TEXT;
CREATE TABLE milepost_next_table (id INTEGER PRIMARY KEY, note TEXT NOT NULL) STRICT;
CREATE INDEX milepost_next_worker_name ON milepost_worker (name);
