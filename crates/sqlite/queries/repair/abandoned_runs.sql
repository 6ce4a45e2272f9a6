-- Runs that no active worker holds. Jobs that are running only because somebody has changed their row have no run that could be lost.
-- ?1 the examination (JSON), ?2 at most
SELECT l.id, l.token, coalesce(l.worker_id, 0) AS worker_id, l.attempt, l.max_attempts,
       l.group_key IS NOT NULL AS grouped, l.stop_verb AS stop_verb,
       EXISTS (SELECT 1 FROM milepost_job j WHERE j.id = l.id AND j.batch_id IS NOT NULL) AS task
FROM milepost_live l
LEFT JOIN milepost_worker w ON w.id = l.worker_id
WHERE l.state = 'running' AND (w.id IS NULL OR w.ended_at_ms < (?1 ->> 'now_ms') - (?1 ->> 'patience_ms'))
  AND coalesce((SELECT h.to_state FROM milepost_history h WHERE h.job_id = l.id ORDER BY h.pos DESC LIMIT 1) = 'running', TRUE)
ORDER BY l.id
LIMIT ?2
