-- A page of processed_event. ?1 how many, ?2 after this consumer, ?3 and event
SELECT consumer, event_id, processed_at_ms FROM milepost_processed_event
WHERE (consumer, event_id) > (?2, ?3) ORDER BY consumer, event_id LIMIT ?1
