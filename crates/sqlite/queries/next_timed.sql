-- When the next job is due after a time that waits in its group for it. ?1 after
SELECT min(due_at_ms) FROM milepost_live INDEXED BY milepost_live_timed WHERE timed = 1 AND due_at_ms > ?1
