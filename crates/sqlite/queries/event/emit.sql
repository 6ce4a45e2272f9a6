-- Writes an event to the log. ?1 id, ?2 type of the aggregate, ?3 its id, ?4 sequence, ?5 now, ?6 type, ?7 headers, ?8 payload
INSERT INTO milepost_event (event_id, aggregate_type, aggregate_id, aggregate_seq, emitted_at_ms, event_type, headers, payload)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
