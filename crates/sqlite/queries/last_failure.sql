-- Returns the last failure of a job, if it has failed. ?1 job, ?2 how many characters of the message
SELECT job_id, at_ms, error_code, substr(error_message, 1, ?2)
FROM milepost_history
WHERE job_id = ?1 AND (error_code IS NOT NULL OR error_message IS NOT NULL)
ORDER BY pos DESC
LIMIT 1
