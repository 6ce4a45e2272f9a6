-- Negates the task numbers of batch ?1 before renumbering, because a new number can equal another task's old one.
UPDATE milepost_batch_task SET task = -1 - task WHERE batch_id = ?1
