-- Returns the log after a position. ?1 the position, ?2 how many
SELECT pos, event_id, aggregate_type, aggregate_id, aggregate_seq, event_type, payload, headers, emitted_at_ms
FROM milepost_event WHERE pos > ?1 ORDER BY pos LIMIT ?2
