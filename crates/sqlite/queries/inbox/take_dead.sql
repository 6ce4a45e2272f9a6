-- Removes an event from the dead letters. ?1 the consumer, ?2 the type of the aggregate, ?3 its id, ?4 the sequence
DELETE FROM milepost_inbox_dead
WHERE consumer = ?1 AND aggregate_type = ?2 AND aggregate_id = ?3 AND aggregate_seq = ?4 AND event_id IS NOT NULL AND reason = 'gap'
RETURNING pos, event_id, aggregate_type, aggregate_id, aggregate_seq, event_type, payload, headers, emitted_at_ms
