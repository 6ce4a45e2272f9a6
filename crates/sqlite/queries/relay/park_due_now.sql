-- Parks an aggregate, or updates a parked one, so that it is due now. ?1 subscription, ?2 type, ?3 id, ?4 now, ?5 why
INSERT INTO milepost_parked_aggregate
    (subscription, aggregate_type, aggregate_id, parked_at_ms, deliveries, next_delivery_at_ms, why)
VALUES (?1, ?2, ?3, ?4, 0, ?4, ?5)
ON CONFLICT (subscription, aggregate_type, aggregate_id) DO UPDATE SET deliveries = 0, next_delivery_at_ms = excluded.next_delivery_at_ms
