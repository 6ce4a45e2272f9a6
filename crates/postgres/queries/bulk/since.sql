-- All who are writing in this database now, to be waited for: a snapshot that ends behind every transaction with an id. That of
-- pg_current_snapshot() ends behind the last one that is over, so that on a quiet server the writers after it would be missed.
select format('%1$s:%1$s:', pg_current_xact_id()::text::bigint + 1)
