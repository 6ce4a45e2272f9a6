-- Returns a dead-lettered event: ?1 its subscription, ?2 its id.
SELECT json_object('dead_at', strftime('%Y-%m-%dT%H:%M:%fZ', dead_at_ms / 1000.0, 'unixepoch'), 'deliveries', deliveries, 'failed', why, 'skipped', json(iif(skipped, 'true', 'false')),
                   'edited', edited)
FROM milepost_dead_event WHERE subscription = ?1 AND event_id = ?2
