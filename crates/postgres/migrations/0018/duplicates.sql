-- Jobs whose key a later job has taken. See docs/adr/0041-duplicates.md.
alter table milepost.job add column key_released boolean;
