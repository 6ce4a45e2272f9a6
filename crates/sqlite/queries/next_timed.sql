-- Returns when the next job of a group that waits for its time is due, after a time. ?1 after
SELECT min(due_at_ms) FROM milepost_live INDEXED BY milepost_live_timed WHERE timed = 1 AND due_at_ms > ?1
