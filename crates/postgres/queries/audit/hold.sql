-- Prevents other audited actions on $1 until this transaction ends, so that each records the state that it found.
select pg_advisory_xact_lock(19800, hashtext($1))
