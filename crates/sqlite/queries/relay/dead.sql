-- Dead-lettered events. ?1 the subscription (NULL: all), ?2 to ?4 the key before which, ?5 how many
SELECT e.pos, e.event_id, e.aggregate_type, e.aggregate_id, e.aggregate_seq, e.event_type, coalesce(d.edited, e.payload) AS payload,
       e.headers, e.emitted_at_ms, d.subscription, d.dead_at_ms, d.deliveries, d.why, d.skipped
FROM milepost_dead_event d
JOIN milepost_event e ON e.pos = d.pos
WHERE (?1 IS NULL OR d.subscription = ?1) AND (d.dead_at_ms, d.event_id, d.subscription) < (?2, ?3, ?4)
ORDER BY d.dead_at_ms DESC, d.event_id DESC, d.subscription DESC
LIMIT ?5
