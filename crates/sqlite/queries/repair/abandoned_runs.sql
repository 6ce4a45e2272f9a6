-- Runs that no active worker holds. ?1 the examination (JSON), ?2 at most
SELECT l.id, l.token, coalesce(l.worker_id, 0) AS worker_id, l.attempt, l.max_attempts,
       l.group_key IS NOT NULL AS grouped, l.stop_verb AS stop_verb,
       EXISTS (SELECT 1 FROM milepost_job j WHERE j.id = l.id AND j.batch_id IS NOT NULL) AS task
FROM milepost_live l
LEFT JOIN milepost_worker w ON w.id = l.worker_id
WHERE l.state = 'running' AND (w.id IS NULL OR w.ended_at_ms < (?1 ->> 'now_ms') - (?1 ->> 'patience_ms'))
ORDER BY l.id
LIMIT ?2
