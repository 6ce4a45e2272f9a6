-- Keeps an event that its consumer cannot process any more. ?1 the consumer, ?2 the type of the aggregate, ?3 its id, ?4 the sequence, ?5 the event's
-- id, ?6 its type, ?7 headers, ?8 payload, ?9 when it was emitted, ?10 now, ?11 why
INSERT INTO milepost_inbox_dead (consumer, aggregate_type, aggregate_id, aggregate_seq, seq_to, reason, why, event_id, event_type, headers,
                                 payload, emitted_at_ms, dead_at_ms)
VALUES (?1, ?2, ?3, ?4, ?4, 'late', ?11, ?5, ?6, ?7, ?8, ?9, ?10)
ON CONFLICT DO NOTHING
