-- Aggregates of which events wait for one that is missing, of consumer $1 or all: $2 how many.
select consumer, aggregate_type, aggregate_id, last_seq + 1 as missing, parked, gives_up_at
from milepost.aggregate_checkpoint
where gives_up_at is not null and ($1::text is null or consumer = $1)
order by gives_up_at, consumer, aggregate_type, aggregate_id
limit $2
