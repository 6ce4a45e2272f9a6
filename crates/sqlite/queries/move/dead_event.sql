-- A page of dead_event. ?1 how many, ?2 after this subscription, ?3 and event
SELECT subscription, event_id, pos, dead_at_ms, deliveries, why, skipped, edited FROM milepost_dead_event
WHERE (subscription, event_id) > (?2, ?3) ORDER BY subscription, event_id LIMIT ?1
