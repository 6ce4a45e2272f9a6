-- Parked events whose aggregate is not parked.
SELECT count(*) OVER () AS count, p.subscription || ': ' || p.aggregate_type || '/' || p.aggregate_id AS what,
       count(*) || ' events' AS detail
FROM milepost_parked_event p
WHERE NOT EXISTS (SELECT 1 FROM milepost_parked_aggregate a
                  WHERE a.subscription = p.subscription AND a.aggregate_type = p.aggregate_type AND a.aggregate_id = p.aggregate_id)
GROUP BY p.subscription, p.aggregate_type, p.aggregate_id
ORDER BY what
LIMIT 10
