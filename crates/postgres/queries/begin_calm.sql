-- Begins a transaction behind a transaction pooler, with the setting of compile_nothing.sql for it alone; in one message. Not by a query, so that
-- the isolation of the transaction can still be chosen.
begin;
set local jit = off
