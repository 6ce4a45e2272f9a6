-- Returns whether the file has Milepost's tables.
SELECT count(*) = 3 FROM sqlite_schema WHERE type = 'table' AND name IN ('milepost_schema_migration', 'milepost_job', 'milepost_live')
