-- Returns the cursor, the last target and the stop request of run token ?2 of bulk job ?1. No row: fenced.
SELECT b.cursor_key, b.upper_key, l.stop_verb, b.retry_of IS NOT NULL
FROM milepost_bulk b JOIN milepost_live l ON l.id = b.job_id
WHERE b.job_id = ?1 AND b.token = ?2 AND b.ended_at_ms IS NULL AND l.token = ?2 AND l.state = 'running'
