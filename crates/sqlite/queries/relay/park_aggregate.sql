-- Parks an aggregate, unless it is already parked. ?1 subscription, ?2 type, ?3 id, ?4 now, ?5 attempts, ?6 when it is due, ?7 why
INSERT INTO milepost_parked_aggregate
    (subscription, aggregate_type, aggregate_id, parked_at_ms, deliveries, next_delivery_at_ms, why)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
ON CONFLICT DO NOTHING
