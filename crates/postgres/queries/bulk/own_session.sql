-- Identifies the session of this connection: its process id, and when it began.
select a.pid, a.backend_start::text from pg_stat_activity a where a.pid = pg_backend_pid()
