-- Returns the parked events of an aggregate: ?1 the subscription, ?2 its type, ?3 its id.
SELECT json_object(
    'events', (SELECT count(*) FROM milepost_parked_event e
               WHERE (e.subscription, e.aggregate_type, e.aggregate_id) = (?1, ?2, ?3)),
    'first', substr(f.id, 1, 8) || '-' || substr(f.id, 9, 4) || '-' || substr(f.id, 13, 4) || '-' || substr(f.id, 17, 4) || '-' || substr(f.id, 21),
    'edited', f.edited, 'deliveries', a.deliveries,
    'next_delivery_at', strftime('%Y-%m-%dT%H:%M:%fZ', a.next_delivery_at_ms / 1000.0, 'unixepoch'), 'failed', a.why)
FROM milepost_parked_aggregate a
LEFT JOIN (SELECT lower(hex(p.event_id)) AS id, p.edited FROM milepost_parked_event p
           WHERE (p.subscription, p.aggregate_type, p.aggregate_id) = (?1, ?2, ?3) ORDER BY p.pos LIMIT 1) f
WHERE (a.subscription, a.aggregate_type, a.aggregate_id) = (?1, ?2, ?3)
