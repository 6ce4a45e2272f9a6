-- Workers whose lease ran out long ago. $1 the look
select count(*) over () as count, w.id::text as what, w.name as detail
from milepost.worker w
where w.ended_at is null and w.lease_expires_at < now() - ($1::jsonb ->> 'patience_ms')::bigint * interval '1 millisecond'
order by what
limit 10
