-- Turns parked events into dead letters. ?1 the consumer, ?2 the type of the aggregate, ?3 its id, ?4 why, ?5 now, ?6 how many
INSERT INTO milepost_inbox_dead (consumer, aggregate_type, aggregate_id, aggregate_seq, seq_to, reason, why, event_id, event_type, headers,
                                 payload, emitted_at_ms, dead_at_ms)
SELECT consumer, aggregate_type, aggregate_id, aggregate_seq, aggregate_seq, 'gap', ?4, event_id, event_type, headers, payload,
       emitted_at_ms, ?5
FROM milepost_inbox_parked
WHERE consumer = ?1 AND aggregate_type = ?2 AND aggregate_id = ?3
ORDER BY aggregate_seq
LIMIT ?6
