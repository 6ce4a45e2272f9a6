-- Counts parked events that have become dead letters; those that are left are due as before. ?1 the consumer, ?2 the type of the aggregate,
-- ?3 its id, ?4 how many
UPDATE milepost_aggregate_checkpoint
SET parked = parked - ?4, dead = dead + ?4, gives_up_at_ms = CASE WHEN parked > ?4 THEN gives_up_at_ms END
WHERE consumer = ?1 AND aggregate_type = ?2 AND aggregate_id = ?3
