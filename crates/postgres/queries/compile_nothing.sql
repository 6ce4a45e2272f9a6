-- Settings of a session for callers' own statements and those of bulk jobs, which keep their search path. JIT compilation is
-- off: the server decides by estimated costs, which are high for tables that were never analyzed and for a list of which one
-- page is read, and compiling then takes longer than the statement. Isolation and the syntax of strings and arrays are
-- those that the statements are written for, and an idle session ends only
-- if its client is gone without a word, whatever the settings of the database or the role are. begin_own.sql is the same for a transaction.
select set_config('jit', 'off', false), set_config('default_transaction_isolation', 'read committed', false),
       set_config('idle_session_timeout', '0', false), set_config('standard_conforming_strings', 'on', false),
       set_config('array_nulls', 'on', false),
       set_config('tcp_keepalives_idle', '20s', false), set_config('tcp_keepalives_interval', '5s', false), set_config('tcp_keepalives_count', '3', false)
