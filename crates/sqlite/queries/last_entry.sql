-- Returns the position of a job's last entry in history. ?1 job
SELECT max(pos) FROM milepost_history WHERE job_id = ?1
