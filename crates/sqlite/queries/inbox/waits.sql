-- Counts a parked event, and sets the deadline of its gap if it has none. ?1 the consumer, ?2 the type of the aggregate, ?3 its id, ?4 the
-- deadline
UPDATE milepost_aggregate_checkpoint
SET parked = parked + 1, gives_up_at_ms = CASE WHEN ready = 0 THEN coalesce(gives_up_at_ms, ?4) END
WHERE consumer = ?1 AND aggregate_type = ?2 AND aggregate_id = ?3
