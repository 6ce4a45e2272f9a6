-- Parked or dead-lettered events that are not in the log at their positions.
SELECT count(*) OVER () AS count, h.event_id AS what, h.detail
FROM (
    SELECT p.event_id, p.pos, 'parked for ' || p.subscription AS detail FROM milepost_parked_event p
    UNION ALL
    SELECT d.event_id, d.pos, 'dead-lettered for ' || d.subscription FROM milepost_dead_event d
) h
WHERE NOT EXISTS (SELECT 1 FROM milepost_event e WHERE e.pos = h.pos AND e.event_id = h.event_id)
ORDER BY what, h.detail
LIMIT 10
