-- Prevents other definitions of DAG $1 until the end of the transaction.
select pg_advisory_xact_lock(19798, hashtext($1))
