-- Marks a job whose key a later job has taken. ?1 job
UPDATE milepost_job SET key_released = 1 WHERE id = ?1
