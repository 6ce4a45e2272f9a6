-- Settings of a session for hot statements, regardless of those of the database and the role: only one possible plan for
-- each, regardless of the last ANALYZE; durable commits; the isolation and the syntax of strings and arrays that the
-- statements are written for; a search path in which no other account can put a function or operator; an early end, well within a lease, of a
-- transaction whose process hangs or is cut off; and no end of an idle session,
-- unless its client is gone without a word.
-- begin_pinned.sql does the same for one transaction.
select set_config('enable_seqscan', 'off', false), set_config('enable_hashjoin', 'off', false),
       set_config('enable_mergejoin', 'off', false), set_config('enable_bitmapscan', 'off', false),
       set_config('jit', 'off', false), set_config('plan_cache_mode', 'force_generic_plan', false),
       set_config('idle_in_transaction_session_timeout', '5s', false),
       set_config('idle_session_timeout', '0', false),
       set_config('tcp_keepalives_idle', '20s', false), set_config('tcp_keepalives_interval', '5s', false), set_config('tcp_keepalives_count', '3', false),
       set_config('tcp_user_timeout', '10s', false),
       set_config('default_transaction_isolation', 'read committed', false),
       set_config('search_path', 'pg_catalog, pg_temp', false),
       set_config('standard_conforming_strings', 'on', false), set_config('array_nulls', 'on', false),
       case when current_setting('synchronous_commit') = 'off' then set_config('synchronous_commit', 'on', false) end
