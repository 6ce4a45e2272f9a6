-- Dead letters, newest first: $1 those of this consumer or all, $2 those before this one, $3 how many.
select pos, consumer, aggregate_type, aggregate_id, aggregate_seq, seq_to, reason, why, dead_at, event_id, event_type,
       payload::text as payload, headers::text as headers, emitted_at
from milepost.inbox_dead
where pos < $2 and ($1::text is null or consumer = $1)
order by pos desc
limit $3
