-- Begins a transaction of which all statements see the same rows, instead of the transaction that has just begun, with the settings of
-- begin_calm.sql.
rollback;
begin isolation level repeatable read, read only;
set local jit = off;
set local standard_conforming_strings = on;
set local array_nulls = on;
set local search_path = pg_catalog, pg_temp
