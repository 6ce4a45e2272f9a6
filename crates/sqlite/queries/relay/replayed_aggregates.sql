-- Returns the aggregates of the events published since a time. ?1 subscription, ?2 the time
SELECT DISTINCT e.aggregate_type, e.aggregate_id
FROM milepost_event e
WHERE e.emitted_at_ms >= ?2 AND e.pos <= (SELECT pos FROM milepost_subscription WHERE name = ?1)
