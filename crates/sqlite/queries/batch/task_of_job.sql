-- Returns the task for which a job was created, the task's state if the job is still its current one, and the job's state. ?1 job
-- This is a separate query: SQLite would prepare a join again for each job, because it compares the bound id with the conditions of partial indexes.
SELECT j.batch_id, j.task,
       (SELECT t.state FROM milepost_batch_task t
        WHERE t.batch_id = j.batch_id AND t.task = j.task AND t.job_id = j.id),
       coalesce((SELECT state FROM milepost_live WHERE id = j.id), (SELECT state FROM milepost_ended WHERE id = j.id))
FROM milepost_job j
WHERE j.id = ?1 AND j.task IS NOT NULL
