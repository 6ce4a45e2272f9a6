-- Jobs of queue ?1 that have not ended; dead letters have.
SELECT count(*) FROM live WHERE queue = ?1 AND state <> 'failed'
