-- Begins a transaction behind a transaction pooler, with the setting of compile_nothing.sql for it alone; in one message.
begin;
select set_config('jit', 'off', true)
