-- Sets the tasks of batch ?1 aside: the new number of one is the old number of another.
UPDATE milepost_batch_task SET task = -1 - task WHERE batch_id = ?1
