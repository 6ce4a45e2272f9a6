-- Runs that no active worker holds. $1 the check's parameters, $2 limit
select l.id, l.token, coalesce(l.worker_id, 0) as worker_id, l.attempt, l.max_attempts,
       l.group_key is not null as grouped, l.stop_verb::text as stop_verb,
       coalesce((select j.batch_id is not null from milepost.job j where j.id = l.id), false) as task
from milepost.live l
left join milepost.worker w on w.id = l.worker_id
where l.state = 'running' and (w.id is null or w.ended_at < now() - ($1::jsonb ->> 'patience_ms')::bigint * interval '1 millisecond')
order by l.id
limit $2
