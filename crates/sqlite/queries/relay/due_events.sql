-- Returns the first events of a parked aggregate. ?1 subscription, ?2 type, ?3 id, ?4 how many
SELECT e.pos, e.event_id, e.aggregate_type, e.aggregate_id, e.aggregate_seq, e.event_type, coalesce(p.edited, e.payload) AS payload,
       e.headers, e.emitted_at_ms, p.replayed
FROM milepost_parked_event p
JOIN milepost_event e ON e.pos = p.pos
WHERE p.subscription = ?1 AND p.aggregate_type = ?2 AND p.aggregate_id = ?3
ORDER BY p.pos
LIMIT ?4
