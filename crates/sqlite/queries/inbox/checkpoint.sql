-- Returns a consumer's position in an aggregate. ?1 the consumer, ?2 the type of the aggregate, ?3 its id
SELECT last_seq, parked, dead, ready, applied_at_ms, last_event_id FROM milepost_aggregate_checkpoint
WHERE consumer = ?1 AND aggregate_type = ?2 AND aggregate_id = ?3
