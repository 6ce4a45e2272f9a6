-- Records that run ?1 was started over the ?2 rows of its file, at ?3. No row: the file no longer exists.
UPDATE milepost_bulk_file SET rows = ?2, started_at_ms = ?3, touched_at_ms = ?3 WHERE run = ?1 AND started_at_ms IS NULL
