-- Has the server compile no statement by its JIT, for a session. The server decides by estimated costs, which are high for tables that were
-- never analyzed, and for a whole list of which people read one page: compiling then takes longer than the statement.
-- Isolation and the reading of strings are those that the statements are written for, whatever the database or the role sets.
-- begin_calm.sql is the same for a transaction.
select set_config('jit', 'off', false), set_config('default_transaction_isolation', 'read committed', false),
       set_config('standard_conforming_strings', 'on', false)
