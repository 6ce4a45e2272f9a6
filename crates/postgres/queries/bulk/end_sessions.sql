-- Ends other sessions in this database that belong to workers of the bulk job with id $1 (as text) and token $2 or lower,
-- and waits up to 2 seconds for each: they may hang in the middle of a chunk. Only sessions of the same role can be ended.
select pg_terminate_backend(a.pid, 2000)
from pg_stat_activity a
where a.datname = current_database() and a.usename = current_user and a.pid <> pg_backend_pid()
  and case when a.application_name ~ ('^milepost bulk ' || $1 || ' [0-9]{1,9}$')
           then split_part(a.application_name, ' ', 4)::int <= $2
           else false end
