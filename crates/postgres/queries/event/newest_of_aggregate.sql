-- A page of the events of an aggregate, newest first: $1 before this position, $2 event type, $3 limit, $4 aggregate type,
-- $5 aggregate id.
select e.pos, e.event_id, e.aggregate_type, e.aggregate_id, e.aggregate_seq, e.event_type, e.payload::text as payload,
       e.headers::text as headers, e.emitted_at
from milepost.event e
where e.aggregate_type = $4 and e.aggregate_id = $5 and e.pos < $1 and ($2::text is null or e.event_type = $2)
order by e.aggregate_seq desc
limit $3
