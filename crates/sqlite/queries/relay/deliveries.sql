-- What became of event ?1 for each subscription.
SELECT e.event_id, s.name,
       CASE WHEN d.skipped = 1 THEN 'skipped' WHEN d.event_id IS NOT NULL THEN 'dead'
            WHEN EXISTS (SELECT 1 FROM milepost_parked_event p WHERE p.event_id = e.event_id AND p.subscription = s.name) THEN 'parked'
            WHEN e.pos <= s.pos THEN 'passed' ELSE 'waiting' END
FROM milepost_event e
CROSS JOIN milepost_subscription s
LEFT JOIN milepost_dead_event d ON d.subscription = s.name AND d.event_id = e.event_id
WHERE e.event_id = ?1
ORDER BY s.name
