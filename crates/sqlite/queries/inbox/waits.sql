-- Counts an event that was parked, and says until when the first of its gap waits. ?1 the consumer, ?2 the type of the aggregate, ?3 its
-- id, ?4 until when
UPDATE milepost_aggregate_checkpoint
SET parked = parked + 1, gives_up_at_ms = CASE WHEN ready = 0 THEN coalesce(gives_up_at_ms, ?4) END
WHERE consumer = ?1 AND aggregate_type = ?2 AND aggregate_id = ?3
