-- Ends the session of a waker that has been silent for $1 seconds: its process hangs or is stopped. $2 the waker's lock
select pg_terminate_backend(a.pid)
from pg_locks l
join pg_stat_activity a on a.pid = l.pid
where l.locktype = 'advisory' and l.classid = 19792 and l.objid = $2::int::oid and l.objsubid = 2 and l.granted
  and l.database = (select oid from pg_database where datname = current_database())
  and a.state = 'idle' and a.state_change < clock_timestamp() - $1 * interval '1 second'
