-- Schedules with a tick that is long overdue. $1 the check's parameters
select count(*) over () as count, s.name as what, 'its tick is due' as detail
from milepost.schedule s
where s.paused_at is null and s.next_at < now() - ($1::jsonb ->> 'patience_ms')::bigint * interval '1 millisecond'
order by what
limit 10
