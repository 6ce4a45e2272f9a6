-- Leaves hot statements one possible plan, whatever ANALYZE last saw; commits durably; and lets the server end a
-- transaction whose process has stopped in the middle, or is cut off, well within a lease.
-- $1: only for this transaction (behind a transaction pooler).
select set_config('enable_seqscan', 'off', $1), set_config('enable_hashjoin', 'off', $1),
       set_config('enable_mergejoin', 'off', $1), set_config('enable_bitmapscan', 'off', $1),
       set_config('jit', 'off', $1), set_config('plan_cache_mode', 'force_generic_plan', $1),
       set_config('idle_in_transaction_session_timeout', '5s', $1),
       set_config('tcp_user_timeout', '10s', $1),
       case when current_setting('synchronous_commit') = 'off' then set_config('synchronous_commit', 'on', $1) end
