-- Records that a consumer has accepted an event, unless it already has. ?1 the consumer, ?2 the event's id, ?3 now
INSERT INTO milepost_processed_event (consumer, event_id, processed_at_ms) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING
