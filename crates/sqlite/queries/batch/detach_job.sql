-- Job ?1 runs by itself from now on.
UPDATE milepost_job SET batch_id = NULL, task = NULL WHERE id = ?1 AND batch_id IS NOT NULL
