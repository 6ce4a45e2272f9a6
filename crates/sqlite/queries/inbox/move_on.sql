-- Sets a consumer's position in an aggregate. ?1 the consumer, ?2 the type of the aggregate, ?3 its id, ?4 the sequence, ?5 now and ?6 the event's id (null: no
-- event was processed)
INSERT INTO milepost_aggregate_checkpoint (consumer, aggregate_type, aggregate_id, last_seq, applied_at_ms, last_event_id) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
ON CONFLICT (consumer, aggregate_type, aggregate_id)
DO UPDATE SET last_seq = excluded.last_seq, applied_at_ms = excluded.applied_at_ms, last_event_id = excluded.last_event_id
