-- Subscriptions, with their backlog.
SELECT s.name, s.made_at_ms, s.paused_at_ms, s.paused_why,
       (SELECT count(*) FROM milepost_event e WHERE e.pos > s.pos),
       (SELECT min(e.emitted_at_ms) FROM milepost_event e WHERE e.pos > s.pos),
       (SELECT count(*) FROM milepost_parked_aggregate a WHERE a.subscription = s.name),
       (SELECT count(*) FROM milepost_parked_aggregate a WHERE a.subscription = s.name AND a.next_delivery_at_ms IS NULL),
       (SELECT a.why FROM milepost_parked_aggregate a WHERE a.subscription = s.name
        ORDER BY a.next_delivery_at_ms IS NULL DESC, a.parked_at_ms LIMIT 1),
       (SELECT count(*) FROM milepost_dead_event d WHERE d.subscription = s.name AND NOT d.skipped)
FROM milepost_subscription s
ORDER BY s.name
