-- Returns the parked aggregates. ?1 subscription
SELECT aggregate_type, aggregate_id FROM milepost_parked_aggregate WHERE subscription = ?1
