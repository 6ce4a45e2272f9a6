-- Takes a dead letter out of live. ?1 job
DELETE FROM live WHERE id = ?1 AND state = 'failed'
