-- Runs that no active worker holds. Jobs that are running only because somebody has changed their row have no run that could be lost.
-- $1 the check's parameters, $2 limit
select l.id, l.token, coalesce(l.worker_id, 0) as worker_id, l.attempt, l.max_attempts,
       l.group_key is not null as grouped, l.stop_verb::text as stop_verb,
       coalesce((select j.batch_id is not null from milepost.job j where j.id = l.id), false) as task
from milepost.live l
left join milepost.worker w on w.id = l.worker_id
where l.state = 'running' and (w.id is null or w.ended_at < now() - ($1::jsonb ->> 'patience_ms')::bigint * interval '1 millisecond')
  and coalesce((select h.to_state from milepost.history h where h.job_id = l.id order by h.pos desc limit 1) = 'running', true)
order by l.id
limit $2
