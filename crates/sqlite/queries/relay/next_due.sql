-- Returns when the next parked event is due. ?1 subscription
SELECT min(next_delivery_at_ms) FROM milepost_parked_aggregate WHERE subscription = ?1 AND next_delivery_at_ms IS NOT NULL
