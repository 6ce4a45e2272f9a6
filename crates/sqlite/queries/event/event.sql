-- Returns the event with an id. ?1 the id
SELECT pos, event_id, aggregate_type, aggregate_id, aggregate_seq, event_type, payload, headers, emitted_at_ms
FROM milepost_event WHERE event_id = ?1
