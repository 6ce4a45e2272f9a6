-- The rate of a group counts a start when a worker claims the job, not when the job gets its slot.
-- start_reserved: 1: the job got its slot by a token of its group that is reserved until the job is claimed. reserved: the number of such jobs at the last
-- check.
ALTER TABLE milepost_live ADD COLUMN start_reserved INTEGER;
CREATE INDEX milepost_live_start_reserved ON milepost_live (group_key) WHERE start_reserved = 1 AND ready_at_ms IS NOT NULL;
ALTER TABLE milepost_group_bucket ADD COLUMN reserved INTEGER NOT NULL DEFAULT 0;
