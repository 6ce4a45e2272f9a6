-- A page of progress. ?1 how many, ?2 after this job
SELECT job_id, done, total, message, checkpoint, updated_at_ms
FROM milepost_progress WHERE job_id > ?2 ORDER BY job_id LIMIT ?1
