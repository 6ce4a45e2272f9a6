-- Dead letters, newest first: $1 of this consumer (null: all), $2 before this one, $3 limit.
select pos, consumer, aggregate_type, aggregate_id, aggregate_seq, seq_to, reason, why, dead_at, event_id, event_type,
       payload::text as payload, headers::text as headers, emitted_at
from milepost.inbox_dead
where pos < $2 and ($1::text is null or consumer = $1)
order by pos desc
limit $3
