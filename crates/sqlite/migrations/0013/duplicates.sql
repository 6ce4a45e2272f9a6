-- Jobs whose key a later job has taken: 1, otherwise NULL. See docs/adr/0041-duplicates.md.
-- From here on, the payload and the options of a job can be edited before it runs.
ALTER TABLE milepost_job ADD COLUMN key_released INTEGER;
