-- A page of inbox_dead. ?1 how many, ?2 after this pos
SELECT pos, event_id, aggregate_type, aggregate_id, aggregate_seq, event_type, payload, headers, emitted_at_ms, consumer, seq_to, reason, why,
       dead_at_ms
FROM milepost_inbox_dead WHERE pos > ?2 ORDER BY pos LIMIT ?1
