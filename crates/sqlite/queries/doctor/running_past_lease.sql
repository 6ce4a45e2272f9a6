-- Jobs that run under a worker that stopped or lost its lease long ago. ?1 the examination (JSON)
SELECT count(*) OVER () AS count, l.id AS what, 'its worker is ' || w.id || CASE WHEN w.ended_at_ms IS NULL THEN ', whose lease expired' ELSE ', which has stopped' END AS detail
FROM milepost_live l
JOIN milepost_worker w ON w.id = l.worker_id
WHERE l.state = 'running'
  AND coalesce(w.ended_at_ms, w.lease_expires_at_ms) < (?1 ->> 'now_ms') - (?1 ->> 'patience_ms')
ORDER BY what
LIMIT 10
