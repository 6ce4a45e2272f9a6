-- A snapshot that ends after all transactions that are writing now, which a run waits for. The one of pg_current_snapshot()
-- ends after the last transaction that has ended, and would miss writers with higher ids.
select format('%1$s:%1$s:', pg_current_xact_id()::text::bigint + 1)
