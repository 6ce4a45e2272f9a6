-- The task that a job was made for, where it stands if this is its job still, and where the job stands. ?1 job
-- Asked apart: a join would be prepared anew for each job, since SQLite compares its id with what partial indexes say.
SELECT j.batch_id, j.task,
       (SELECT t.state FROM milepost_batch_task t
        WHERE t.batch_id = j.batch_id AND t.task = j.task AND t.job_id = j.id),
       coalesce((SELECT state FROM milepost_live WHERE id = j.id), (SELECT state FROM milepost_ended WHERE id = j.id))
FROM milepost_job j
WHERE j.id = ?1 AND j.task IS NOT NULL
