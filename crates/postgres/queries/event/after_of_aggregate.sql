-- A page of the events of an aggregate, oldest first: $1 those after this position, $2 the type of the event, $3 how many,
-- $4 the type of the aggregate, $5 its id.
select e.pos, e.event_id, e.aggregate_type, e.aggregate_id, e.aggregate_seq, e.event_type, e.payload::text as payload,
       e.headers::text as headers, e.emitted_at
from milepost.event e
where e.aggregate_type = $4 and e.aggregate_id = $5 and e.pos > $1 and ($2::text is null or e.event_type = $2)
order by e.aggregate_seq
limit $3
