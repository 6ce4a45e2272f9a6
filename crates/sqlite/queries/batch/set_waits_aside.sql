-- Negates the task numbers of waits of batch ?1, since the new number of one task is the old number of another.
UPDATE milepost_batch_wait SET task = -1 - task WHERE batch_id = ?1
