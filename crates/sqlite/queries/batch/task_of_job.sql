-- The task whose job this is now, and where both stand. ?1 job
SELECT t.batch_id, t.task, t.state, coalesce(l.state, e.state)
FROM milepost_job j
CROSS JOIN milepost_batch_task t ON t.batch_id = j.batch_id AND t.task = j.task AND t.job_id = j.id
LEFT JOIN milepost_live l ON l.id = j.id
LEFT JOIN milepost_ended e ON e.id = j.id
WHERE j.id = ?1
