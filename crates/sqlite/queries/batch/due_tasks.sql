-- Tasks of a batch that are due. ?1 batch, ?2 how many
SELECT task FROM milepost_batch_task INDEXED BY milepost_batch_task_due
WHERE batch_id = ?1 AND state = 'due' ORDER BY task LIMIT ?2
