-- Jobs of queue ?1 that have not ended; dead letters have.
SELECT count(*) FROM milepost_live WHERE queue = ?1 AND state <> 'failed'
