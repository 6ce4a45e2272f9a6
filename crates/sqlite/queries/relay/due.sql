-- Parked aggregates whose next delivery is due. ?1 subscription, ?2 now, ?3 how many
SELECT aggregate_type, aggregate_id, deliveries, next_delivery_at_ms FROM milepost_parked_aggregate
WHERE subscription = ?1 AND next_delivery_at_ms <= ?2
ORDER BY next_delivery_at_ms
LIMIT ?3
