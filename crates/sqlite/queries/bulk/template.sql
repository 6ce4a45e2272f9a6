-- Returns the job options that bulk job ?1 was started with.
SELECT j.kind, j.queue, j.payload, j.group_key, j.priority, j.max_attempts
FROM milepost_job j JOIN milepost_bulk b ON b.job_id = j.id
WHERE j.id = ?1
