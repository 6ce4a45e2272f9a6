-- The parked aggregates of slots.
select aggregate_type, aggregate_id from milepost.parked_aggregate where subscription = $1 and slot = any ($2)
