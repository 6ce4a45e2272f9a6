-- Keeps others with an actor from changing $1 until this transaction ends, so that each says what it found.
select pg_advisory_xact_lock(19800, hashtext($1))
