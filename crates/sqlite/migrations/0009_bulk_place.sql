-- Where the targets of a bulk job are, when that is another database: its name and address, without secrets.
ALTER TABLE milepost_bulk_definition ADD COLUMN place TEXT;

-- Who was writing there when the run began, as a snapshot of that database; its targets are frozen when all of those have ended.
ALTER TABLE milepost_bulk ADD COLUMN snapshot TEXT;
