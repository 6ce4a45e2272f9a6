-- Jobs whose key a later job has taken. See docs/adr/0041-duplicates.md.
-- From here on, the payload and the options of a job can be edited before it runs.
alter table milepost.job add column key_released boolean;
