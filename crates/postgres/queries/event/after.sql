-- A page of the log, oldest first: $1 after this position, $2 event type, $3 limit. Each slot is read from that position.
select e.pos, e.event_id, e.aggregate_type, e.aggregate_id, e.aggregate_seq, e.event_type, e.payload::text as payload,
       e.headers::text as headers, e.emitted_at
from generate_series(0, 63) s(slot)
cross join lateral (
    select * from milepost.event
    where slot = s.slot and pos > $1 and ($2::text is null or event_type = $2)
    order by slot, pos
    limit $3
) e
order by e.pos
limit $3
