-- Settings of a session for Milepost's rare statements: those of compile_nothing.sql, durable commits, and a search path in which no
-- other account can put a function or operator. begin_calm.sql is the same for a transaction.
select set_config('jit', 'off', false), set_config('default_transaction_isolation', 'read committed', false),
       set_config('search_path', 'pg_catalog, pg_temp', false),
       set_config('idle_session_timeout', '0', false), set_config('standard_conforming_strings', 'on', false), set_config('array_nulls', 'on', false),
       set_config('tcp_keepalives_idle', '20s', false), set_config('tcp_keepalives_interval', '5s', false), set_config('tcp_keepalives_count', '3', false),
       case when current_setting('synchronous_commit') = 'off' then set_config('synchronous_commit', 'on', false) end
