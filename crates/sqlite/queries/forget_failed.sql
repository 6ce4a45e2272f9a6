-- Deletes a dead letter from live. ?1 job
DELETE FROM milepost_live WHERE id = ?1 AND state = 'failed'
