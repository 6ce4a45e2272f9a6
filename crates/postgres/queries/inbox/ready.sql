-- Aggregates of consumer $1 whose next event may be among those that are kept: $2 how many.
select aggregate_type, aggregate_id from milepost.inbox_ready($1, $2)
