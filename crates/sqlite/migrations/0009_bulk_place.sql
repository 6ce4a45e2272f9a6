-- The database of the targets, if it is not this one: name and address, without secrets.
ALTER TABLE milepost_bulk_definition ADD COLUMN place TEXT;

-- The transactions that were open on the target database when the run began, as a snapshot of that database. The set of targets is final
-- when all of them have ended.
ALTER TABLE milepost_bulk ADD COLUMN snapshot TEXT;
