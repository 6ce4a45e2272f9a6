-- Deletes the last sequence number of a job's state changes, if there is one. ?1 the job, ?2 its id as text
DELETE FROM milepost_aggregate
WHERE aggregate_type = (SELECT 'milepost.job.' || kind FROM milepost_job WHERE id = ?1) AND aggregate_id = ?2
