-- Updates the task counts of a batch. ?1 batch, ?2 … ?9 the change of the count of each state, ?10 state, ?11 now, ?12 whether it has ended
UPDATE OR FAIL milepost_batch
SET waiting = waiting + ?2, due = due + ?3, active = active + ?4, failed = failed + ?5, aborted = aborted + ?6,
    succeeded = succeeded + ?7, skipped = skipped + ?8, canceled = canceled + ?9,
    state = ?10, updated_at_ms = ?11, ended_at_ms = iif(?12, coalesce(ended_at_ms, ?11), NULL)
WHERE id = ?1
