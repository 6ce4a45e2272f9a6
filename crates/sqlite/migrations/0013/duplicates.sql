-- Jobs whose key a later job has taken: 1, otherwise NULL. See docs/adr/0041-duplicates.md.
ALTER TABLE milepost_job ADD COLUMN key_released INTEGER;
