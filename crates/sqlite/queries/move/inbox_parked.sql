-- A page of inbox_parked. ?1 how many, ?2 after this pos
SELECT pos, event_id, aggregate_type, aggregate_id, aggregate_seq, event_type, payload, headers, emitted_at_ms, consumer, parked_at_ms
FROM milepost_inbox_parked WHERE pos > ?2 ORDER BY pos LIMIT ?1
