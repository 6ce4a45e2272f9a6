-- Stores a new job as waiting: for a worker (ready at) or for its group (due at).
-- ?1 id, ?2 kind, ?3 queue, ?4 priority, ?5 state, ?6 ready at, ?7 due at, ?8 max attempts, ?9 group, ?10 now,
-- ?11 1 if its start is reserved
-- OR FAIL keeps no statement journal: a verb that fails is rolled back as a whole.
INSERT OR FAIL INTO milepost_live (id, kind, queue, priority, state, ready_at_ms, due_at_ms, attempt, max_attempts, token, group_key, timed,
                                     start_reserved)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 0, ?8, 0, ?9, iif(?7 > ?10, 1, NULL), ?11)
