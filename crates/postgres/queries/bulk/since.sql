-- Snapshot that ends behind all transactions that are writing now, which a run waits for. That of pg_current_snapshot() ends
-- behind the last transaction that has ended: it would miss writers whose ids are higher.
select format('%1$s:%1$s:', pg_current_xact_id()::text::bigint + 1)
