-- Parks the event of a dead letter again. ?1 its id, ?2 now
INSERT INTO milepost_inbox_parked (consumer, aggregate_type, aggregate_id, aggregate_seq, event_id, event_type, headers, payload,
                                   emitted_at_ms, parked_at_ms)
SELECT consumer, aggregate_type, aggregate_id, aggregate_seq, event_id, event_type, headers, payload, emitted_at_ms, ?2
FROM milepost_inbox_dead WHERE pos = ?1
