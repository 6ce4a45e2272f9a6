-- Parked aggregates without parked events.
SELECT count(*) OVER () AS count, a.subscription || ': ' || a.aggregate_type || '/' || a.aggregate_id AS what,
       'parked since ' || datetime(a.parked_at_ms / 1000, 'unixepoch') AS detail
FROM milepost_parked_aggregate a
WHERE NOT EXISTS (SELECT 1 FROM milepost_parked_event p
                  WHERE p.subscription = a.subscription AND p.aggregate_type = a.aggregate_type AND p.aggregate_id = a.aggregate_id)
ORDER BY what
LIMIT 10
