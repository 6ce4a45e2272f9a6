-- Workers whose lease ran out long ago and that are not marked as ended. $1 the check's parameters
select count(*) over () as count, w.id::text as what, w.name as detail
from milepost.worker w
where w.ended_at is null and w.lease_expires_at < now() - ($1::jsonb ->> 'patience_ms')::bigint * interval '1 millisecond'
order by what
limit 10
