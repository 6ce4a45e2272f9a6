-- Returns the maximum number of attempts that a job was enqueued with. ?1 job
SELECT max_attempts FROM milepost_job WHERE id = ?1
