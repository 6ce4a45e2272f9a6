-- Returns whether the session with process id $1 that began at $2 exists, and has not been waiting for a statement for 5 seconds. Of a
-- session of another role, only its existence is visible.
select exists (
  select from pg_stat_activity a
  where a.pid = $1 and coalesce(a.backend_start = $2::timestamptz, true)
    and not coalesce(a.state = 'idle' and a.state_change < clock_timestamp() - interval '5 s', false))
