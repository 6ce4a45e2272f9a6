-- Counts parked events that became dead letters; the deadline of the remaining ones is unchanged. ?1 the consumer, ?2 the type of the
-- aggregate, ?3 its id, ?4 how many
UPDATE milepost_aggregate_checkpoint
SET parked = parked - ?4, dead = dead + ?4, gives_up_at_ms = CASE WHEN parked > ?4 THEN gives_up_at_ms END
WHERE consumer = ?1 AND aggregate_type = ?2 AND aggregate_id = ?3
