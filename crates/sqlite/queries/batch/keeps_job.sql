-- Returns whether a batch still needs job ?1.
SELECT 1 FROM milepost_job j CROSS JOIN milepost_batch b ON b.id = j.batch_id WHERE j.id = ?1
