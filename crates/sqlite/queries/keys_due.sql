-- Counts the keys kept after their jobs that retention can delete. ?1 those whose jobs ended before this time
SELECT count(*) FROM milepost_job_key INDEXED BY milepost_job_key_due WHERE job_ended_at_ms < ?1
