-- Detaches job ?1 from its batch: it is rerun separately.
UPDATE milepost_job SET batch_id = NULL, task = NULL WHERE id = ?1 AND batch_id IS NOT NULL
