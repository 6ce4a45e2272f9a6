-- Records that the file of run ?1 is still being staged, at ?2. No row: it is not.
UPDATE milepost_bulk_file SET touched_at_ms = ?2 WHERE run = ?1 AND started_at_ms IS NULL
