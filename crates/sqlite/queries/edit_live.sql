-- Applies new options to a job that does not run; NULL: as before. ?1 job, ?2 priority, ?3 max attempts, ?4 attempts that must be left, ?5 when
-- it may start, ?6 now
UPDATE milepost_live
SET priority = coalesce(?2, priority),
    max_attempts = iif(?3 IS NULL, max_attempts, max(?3, attempt + ?4)),
    ready_at_ms = iif(ready_at_ms IS NULL, NULL, iif(?5 IS NULL AND ?2 <> priority, max(ready_at_ms, ?6), coalesce(?5, ready_at_ms))),
    due_at_ms = iif(due_at_ms IS NULL, NULL, coalesce(?5, due_at_ms)),
    timed = iif(due_at_ms IS NULL OR ?5 IS NULL, timed, iif(?5 > ?6, 1, NULL)),
    start_reserved = iif(?5 > ?6, NULL, start_reserved)
WHERE id = ?1
