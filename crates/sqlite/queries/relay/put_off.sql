-- Updates the delivery state of a parked aggregate. ?1 subscription, ?2 type, ?3 id, ?4 attempts, ?5 when it is due, ?6 why (NULL: as
-- before)
UPDATE milepost_parked_aggregate SET deliveries = ?4, next_delivery_at_ms = ?5, why = coalesce(?6, why)
WHERE subscription = ?1 AND aggregate_type = ?2 AND aggregate_id = ?3
