-- Keeps a parked event whose sequence another one has as a dead letter. ?1 the consumer, ?2 the type of the aggregate, ?3 its id, ?4 the sequence, ?5 the id of
-- the other event, ?6 why, ?7 now
INSERT INTO milepost_inbox_dead (consumer, aggregate_type, aggregate_id, aggregate_seq, seq_to, reason, why, event_id, event_type, headers,
                                 payload, emitted_at_ms, dead_at_ms)
SELECT consumer, aggregate_type, aggregate_id, aggregate_seq, aggregate_seq, 'late', ?6, event_id, event_type, headers, payload, emitted_at_ms, ?7
FROM milepost_inbox_parked
WHERE consumer = ?1 AND aggregate_type = ?2 AND aggregate_id = ?3 AND aggregate_seq = ?4 AND event_id <> ?5
ON CONFLICT DO NOTHING
