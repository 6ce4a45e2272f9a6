-- Dead-letters an event. ?1 subscription, ?2 id, ?3 now, ?4 attempts, ?5 why, ?6 whether it is skipped
INSERT INTO milepost_dead_event (subscription, event_id, pos, dead_at_ms, deliveries, why, skipped, edited)
SELECT ?1, e.event_id, e.pos, ?3, ?4, ?5, ?6, p.edited
FROM milepost_event e
LEFT JOIN milepost_parked_event p ON p.event_id = e.event_id AND p.subscription = ?1
WHERE e.event_id = ?2
ON CONFLICT (subscription, event_id) DO UPDATE SET dead_at_ms = excluded.dead_at_ms, deliveries = excluded.deliveries, why = excluded.why
