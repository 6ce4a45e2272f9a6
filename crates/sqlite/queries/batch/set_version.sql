-- Batch ?1 is a run of version ?2 from now on.
UPDATE milepost_batch SET version_id = ?2 WHERE id = ?1
