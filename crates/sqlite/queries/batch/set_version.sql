-- Switches batch ?1 to version ?2.
UPDATE milepost_batch SET version_id = ?2 WHERE id = ?1
