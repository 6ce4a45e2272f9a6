-- Parks the events that were published since a time. ?1 subscription, ?2 the time
INSERT INTO milepost_parked_event (subscription, aggregate_type, aggregate_id, pos, event_id, replayed)
SELECT ?1, e.aggregate_type, e.aggregate_id, e.pos, e.event_id, 1
FROM milepost_event e
WHERE e.emitted_at_ms >= ?2 AND e.pos <= (SELECT pos FROM milepost_subscription WHERE name = ?1)
ON CONFLICT DO NOTHING
