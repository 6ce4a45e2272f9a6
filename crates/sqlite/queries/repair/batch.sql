-- Sets the task counts of a batch and its end time. ?1 batch, ?2 … ?9 tasks by state, ?10 now
UPDATE milepost_batch
SET waiting = ?2, due = ?3, active = ?4, failed = ?5, aborted = ?6, succeeded = ?7, skipped = ?8, canceled = ?9,
    ended_at_ms = iif(state IN ('done', 'canceled'), coalesce(ended_at_ms, ?10), NULL)
WHERE id = ?1
