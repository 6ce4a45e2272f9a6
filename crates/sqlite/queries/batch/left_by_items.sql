-- Returns the results of a batch over the items of a list, in item order. ?1 batch
SELECT e.result FROM milepost_batch_task t LEFT JOIN milepost_ended e ON e.id = t.job_id AND e.state = 'succeeded'
WHERE t.batch_id = ?1 ORDER BY t.task
