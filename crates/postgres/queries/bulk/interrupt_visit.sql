-- Cancels the current statement, in this database, of a worker of the bulk job with id $1 (as text).
select pg_cancel_backend(a.pid)
from pg_stat_activity a
where a.datname = current_database() and a.usename = current_user and a.state <> 'idle'
  and a.application_name ~ ('^milepost bulk ' || $1 || ' [0-9]+$')
