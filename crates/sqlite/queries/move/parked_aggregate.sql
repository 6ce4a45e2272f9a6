-- A page of parked_aggregate. ?1 how many, ?2 after this subscription, ?3 type of aggregate, ?4 and id
SELECT subscription, aggregate_type, aggregate_id, parked_at_ms, deliveries, next_delivery_at_ms, why FROM milepost_parked_aggregate
WHERE (subscription, aggregate_type, aggregate_id) > (?2, ?3, ?4) ORDER BY subscription, aggregate_type, aggregate_id LIMIT ?1
