-- Begins a transaction behind a transaction pooler, with the settings of pin_plans.sql for this transaction; one message.
begin isolation level read committed;
select set_config('enable_seqscan', 'off', true), set_config('enable_hashjoin', 'off', true),
       set_config('enable_mergejoin', 'off', true), set_config('enable_bitmapscan', 'off', true),
       set_config('jit', 'off', true), set_config('plan_cache_mode', 'force_generic_plan', true),
       set_config('idle_in_transaction_session_timeout', '5s', true),
       set_config('tcp_user_timeout', '10s', true), set_config('search_path', 'pg_catalog, pg_temp', true),
       set_config('standard_conforming_strings', 'on', true), set_config('array_nulls', 'on', true),
       case when current_setting('synchronous_commit') = 'off' then set_config('synchronous_commit', 'on', true) end
