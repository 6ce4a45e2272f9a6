-- Releases the slot that a job holds. ?1 job
DELETE FROM milepost_group_slot WHERE job_id = ?1
