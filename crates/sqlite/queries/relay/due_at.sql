-- Returns since when a parked aggregate is due. ?1 subscription, ?2 type, ?3 id
SELECT next_delivery_at_ms FROM milepost_parked_aggregate WHERE subscription = ?1 AND aggregate_type = ?2 AND aggregate_id = ?3
