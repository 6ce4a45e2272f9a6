-- Jobs that still run long after their grace time has passed. $1 the check's parameters
select count(*) over () as count, l.id::text as what, 'asked to ' || l.stop_verb::text as detail
from milepost.live l
where l.state = 'running' and l.stop_at < now() - ($1::jsonb ->> 'patience_ms')::bigint * interval '1 millisecond'
order by what
limit 10
