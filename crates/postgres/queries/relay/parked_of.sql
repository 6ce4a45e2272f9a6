-- Which aggregates of slots are parked.
select aggregate_type, aggregate_id from milepost.parked_aggregate where subscription = $1 and slot = any ($2)
