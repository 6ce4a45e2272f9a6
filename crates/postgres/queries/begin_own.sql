-- Begins a transaction behind a transaction pooler, with the settings of compile_nothing.sql for this transaction; one
-- message. Uses no query, so that the isolation level of the transaction can still be changed.
begin isolation level read committed;
set local jit = off;
set local standard_conforming_strings = on;
set local array_nulls = on
