-- Parked aggregates with their first events. ?1 the subscription (NULL: all), ?2 to ?5 the key after which, ?6 how many
SELECT e.pos, e.event_id, e.aggregate_type, e.aggregate_id, e.aggregate_seq, e.event_type, coalesce(f.edited, e.payload) AS payload,
       e.headers, e.emitted_at_ms, a.subscription, a.parked_at_ms, a.deliveries, a.next_delivery_at_ms, a.why,
       (SELECT count(*) FROM milepost_parked_event p
        WHERE p.subscription = a.subscription AND p.aggregate_type = a.aggregate_type AND p.aggregate_id = a.aggregate_id),
       f.edited IS NOT NULL
FROM milepost_parked_aggregate a
JOIN milepost_parked_event f ON f.subscription = a.subscription AND f.aggregate_type = a.aggregate_type AND f.aggregate_id = a.aggregate_id
    AND f.pos = (SELECT min(p.pos) FROM milepost_parked_event p
                 WHERE p.subscription = a.subscription AND p.aggregate_type = a.aggregate_type AND p.aggregate_id = a.aggregate_id)
JOIN milepost_event e ON e.pos = f.pos
WHERE (?1 IS NULL OR a.subscription = ?1) AND (a.parked_at_ms, a.subscription, a.aggregate_type, a.aggregate_id) > (?2, ?3, ?4, ?5)
ORDER BY a.parked_at_ms, a.subscription, a.aggregate_type, a.aggregate_id
LIMIT ?6
