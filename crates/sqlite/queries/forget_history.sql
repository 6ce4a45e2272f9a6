-- Deletes the oldest entries of a job's history. ?1 job, ?2 none from this position on, ?3 how many at most
DELETE FROM milepost_history WHERE pos IN (
    SELECT pos FROM milepost_history WHERE job_id = ?1 AND pos < ?2 ORDER BY pos LIMIT ?3
)
