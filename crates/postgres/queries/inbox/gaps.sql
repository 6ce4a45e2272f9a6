-- Aggregates with events that wait for a missing one, of consumer $1 (null: all), after the position $2 to $5 (null: from
-- the first one): $6 limit.
select consumer, aggregate_type, aggregate_id, last_seq + 1 as missing, parked, gives_up_at
from milepost.aggregate_checkpoint
where gives_up_at is not null and ($1::text is null or consumer = $1)
  and (gives_up_at, consumer, aggregate_type, aggregate_id) > (coalesce($2::timestamptz, '-infinity'), $3::text, $4::text, $5::text)
order by gives_up_at, consumer, aggregate_type, aggregate_id
limit $6
