-- Makes waiting jobs without a start time ready, and removes the start time of jobs that do not wait. ?1 at most, ?2 now
UPDATE milepost_live SET ready_at_ms = CASE WHEN state IN ('pending', 'retry_wait') THEN ?2 END
WHERE id IN (
    SELECT l.id FROM milepost_live l
    WHERE (l.state IN ('pending', 'retry_wait')) <> (l.ready_at_ms IS NOT NULL)
    ORDER BY l.id LIMIT ?1
)
RETURNING id
