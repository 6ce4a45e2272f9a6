-- Adds jobs that are neither live nor ended to ended, if their history is complete and ends there. ?1 at most
WITH lost AS (
    SELECT j.*, (SELECT max(h.pos) FROM milepost_history h WHERE h.job_id = j.id) AS pos
    FROM milepost_job j
    WHERE NOT EXISTS (SELECT 1 FROM milepost_live l WHERE l.id = j.id) AND NOT EXISTS (SELECT 1 FROM milepost_ended e WHERE e.id = j.id)
      AND EXISTS (SELECT 1 FROM milepost_history h WHERE h.job_id = j.id)
      AND NOT EXISTS (SELECT 1 FROM (
          SELECT h.verb, h.from_state, h.token, lag(h.to_state) OVER (ORDER BY h.pos) AS before,
                 coalesce(lag(h.token) OVER (ORDER BY h.pos), 0) AS token_before
          FROM milepost_history h WHERE h.job_id = j.id
      ) c WHERE c.from_state IS DISTINCT FROM c.before OR (c.before IS NULL) <> (c.verb = 'create')
            OR CASE WHEN c.verb = 'claim' THEN c.token <= c.token_before ELSE c.token <> c.token_before END)
)
INSERT INTO milepost_ended (id, kind, queue, ended_at_ms, state, token, attempt, max_attempts)
SELECT j.id, j.kind, j.queue, h.at_ms, h.to_state, h.token, h.attempt,
           max(j.max_attempts, h.attempt, coalesce((
               SELECT max(a.attempt + CASE WHEN a.verb = 'resume' THEN 1 ELSE j.max_attempts END) FROM milepost_history a
               WHERE a.job_id = j.id AND (a.verb IN ('rerun', 'resume') OR (a.verb = 'retry_now' AND a.from_state = 'failed'))
           ), 0))
FROM lost j
JOIN milepost_history h ON h.pos = j.pos AND h.job_id = j.id
WHERE h.to_state IN ('succeeded', 'canceled', 'skipped')
ORDER BY j.id
LIMIT ?1
ON CONFLICT DO NOTHING
RETURNING id
