-- Stops the statement that bulk job $1 is in.
select pg_cancel_backend(a.pid)
from milepost.bulk b
join pg_stat_activity a on a.pid = b.backend_pid and a.backend_start = b.backend_started_at
where b.job_id = $1 and b.ended_at is null and a.state <> 'idle'
