-- Aggregates of consumer $1 whose next event may be among the kept ones: $2 limit.
select aggregate_type, aggregate_id from milepost.inbox_ready($1, $2)
