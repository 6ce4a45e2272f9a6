-- Moves the time before which a waiting job may not be claimed. ?1 job, ?2 the time, ?3 now
UPDATE milepost_live
SET ready_at_ms = iif(state = 'blocked', NULL, ?2), due_at_ms = iif(state = 'blocked', ?2, NULL),
    timed = iif(state = 'blocked' AND ?2 > ?3, 1, NULL),
    start_reserved = NULL
WHERE id = ?1
