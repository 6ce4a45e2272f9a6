-- Cancels the current statement of bulk job $1.
select pg_cancel_backend(a.pid)
from milepost.bulk b
join pg_stat_activity a on a.pid = b.backend_pid and a.backend_start = b.backend_started_at
where b.job_id = $1 and b.ended_at is null and a.state <> 'idle'
