-- Ends the sessions that workers of the bulk job with the id $1 (as text) have in this database with token $2 or before, on other
-- connections, and waits a little until they are gone: they may have stopped in the middle of a chunk. Only those of the
-- same role can be.
select pg_terminate_backend(a.pid, 2000)
from pg_stat_activity a
where a.datname = current_database() and a.usename = current_user and a.pid <> pg_backend_pid()
  and case when a.application_name ~ ('^milepost bulk ' || $1 || ' [0-9]{1,9}$')
           then split_part(a.application_name, ' ', 4)::int <= $2
           else false end
