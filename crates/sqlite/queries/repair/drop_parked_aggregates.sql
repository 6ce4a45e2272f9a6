-- Deletes parked aggregates without parked events. ?1 at most
DELETE FROM milepost_parked_aggregate
WHERE (subscription, aggregate_type, aggregate_id) IN (
    SELECT a.subscription, a.aggregate_type, a.aggregate_id FROM milepost_parked_aggregate a
    WHERE NOT EXISTS (SELECT 1 FROM milepost_parked_event p
                      WHERE p.subscription = a.subscription AND p.aggregate_type = a.aggregate_type AND p.aggregate_id = a.aggregate_id)
    LIMIT ?1
)
RETURNING subscription || ': ' || aggregate_type || '/' || aggregate_id
