-- Ends the other session that processed run $1 with token $2 or lower: its worker may hang in the middle of a chunk.
select pg_terminate_backend(a.pid)
from milepost.bulk b
join pg_stat_activity a on a.pid = b.backend_pid and a.backend_start = b.backend_started_at
where b.job_id = $1 and b.token <= $2 and a.pid <> pg_backend_pid()
