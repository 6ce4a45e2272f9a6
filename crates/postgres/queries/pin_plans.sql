-- Leaves hot statements one possible plan, whatever ANALYZE last saw; commits durably; and lets the server end a
-- transaction whose process has stopped in the middle, or is cut off, well within a lease. For a session;
-- begin_pinned.sql is the same for a transaction.
select set_config('enable_seqscan', 'off', false), set_config('enable_hashjoin', 'off', false),
       set_config('enable_mergejoin', 'off', false), set_config('enable_bitmapscan', 'off', false),
       set_config('jit', 'off', false), set_config('plan_cache_mode', 'force_generic_plan', false),
       set_config('idle_in_transaction_session_timeout', '5s', false),
       set_config('tcp_user_timeout', '10s', false),
       case when current_setting('synchronous_commit') = 'off' then set_config('synchronous_commit', 'on', false) end
