-- Begins a transaction behind a transaction pooler, with the settings of compile_nothing.sql for it alone; in one message. Not by a query, so that
-- the isolation of the transaction can still be chosen.
begin isolation level read committed;
set local jit = off;
set local standard_conforming_strings = on
