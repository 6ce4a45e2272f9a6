-- Begins a transaction behind a transaction pooler, with the settings of pin_calm.sql for this transaction; one message.
begin isolation level read committed;
select set_config('jit', 'off', true), set_config('standard_conforming_strings', 'on', true), set_config('array_nulls', 'on', true),
       set_config('search_path', 'pg_catalog, pg_temp', true),
       case when current_setting('synchronous_commit') = 'off' then set_config('synchronous_commit', 'on', true) end
