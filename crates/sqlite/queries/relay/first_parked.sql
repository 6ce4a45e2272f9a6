-- Returns the first parked event of an aggregate. ?1 subscription, ?2 type, ?3 id
SELECT p.pos, p.event_id, a.deliveries, a.why
FROM milepost_parked_event p
JOIN milepost_parked_aggregate a USING (subscription, aggregate_type, aggregate_id)
WHERE p.subscription = ?1 AND p.aggregate_type = ?2 AND p.aggregate_id = ?3
ORDER BY p.pos
LIMIT 1
