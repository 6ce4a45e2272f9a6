-- Jobs that match, among the ?4 newest of a scope that are older than ?1 and not older than ?2; at most ?3. ?5 state, ?6 kind, ?7 queue, ?8
-- key, ?9 created at this time or later, ?10 before this time, ?11 failed at this time or later, ?12 error code or part of the message, ?13
-- a path into the payload and ?14 the value at it, as JSON (NULL: any of these). ?15 the scope: jobs with this key, running jobs, jobs of
-- live or of ended in the rare state ?5, live jobs, ended jobs, or all; rows outside the scope are not read.
WITH looked_at AS MATERIALIZED (
    SELECT * FROM (
        SELECT * FROM (
            SELECT id, state, attempt, max_attempts, ready_at_ms, started_at_ms, NULL AS ended_at_ms, worker_id, token
            FROM milepost_live WHERE ?15 IN ('all', 'live') AND id < ?1 AND id >= ?2 ORDER BY id DESC LIMIT ?4
        )
        UNION ALL
        SELECT * FROM (
            SELECT id, state, attempt, max_attempts, NULL, started_at_ms, ended_at_ms, NULL, token
            FROM milepost_ended WHERE ?15 IN ('all', 'ended') AND id < ?1 AND id >= ?2 ORDER BY id DESC LIMIT ?4
        )
        UNION ALL
        SELECT * FROM (
            SELECT id, state, attempt, max_attempts, ready_at_ms, started_at_ms, NULL, worker_id, token
            FROM milepost_live INDEXED BY milepost_live_aside
            WHERE ?15 = 'live_aside' AND state <> 'pending' AND state <> 'running' AND state = ?5 AND id < ?1 AND id >= ?2
            ORDER BY id DESC LIMIT ?4
        )
        UNION ALL
        SELECT * FROM (
            SELECT id, state, attempt, max_attempts, NULL, started_at_ms, ended_at_ms, NULL, token
            FROM milepost_ended INDEXED BY milepost_ended_aside
            WHERE ?15 = 'ended_aside' AND state <> 'succeeded' AND state = ?5 AND id < ?1 AND id >= ?2
            ORDER BY id DESC LIMIT ?4
        )
        UNION ALL
        -- Running jobs are few; only worker_id has an index that contains nothing else.
        SELECT * FROM (
            SELECT id, state, attempt, max_attempts, ready_at_ms, started_at_ms, NULL, worker_id, token
            FROM milepost_live INDEXED BY milepost_live_worker
            WHERE ?15 = 'running' AND worker_id IS NOT NULL AND id < ?1 AND id >= ?2
            ORDER BY id DESC LIMIT ?4
        )
        UNION ALL
        SELECT * FROM (
            SELECT k.id, coalesce(l.state, e.state), coalesce(l.attempt, e.attempt), coalesce(l.max_attempts, e.max_attempts), l.ready_at_ms,
                   coalesce(l.started_at_ms, e.started_at_ms), e.ended_at_ms, l.worker_id, coalesce(l.token, e.token)
            FROM milepost_job k INDEXED BY milepost_job_key_id
            LEFT JOIN milepost_live l ON l.id = k.id
            LEFT JOIN milepost_ended e ON e.id = k.id
            WHERE ?15 = 'key' AND k.key = ?8 AND k.id < ?1 AND k.id >= ?2
            ORDER BY k.id DESC LIMIT ?4
        )
    )
    ORDER BY id DESC
    LIMIT ?4
),
found AS MATERIALIZED (
    SELECT s.id, j.kind, j.queue, s.state, j.priority, s.attempt, s.max_attempts, j.key, j.group_key, j.created_at_ms, s.ready_at_ms,
           s.started_at_ms, s.ended_at_ms, s.worker_id, s.token, j.nominal_at_ms
    FROM looked_at s
    CROSS JOIN milepost_job j ON j.id = s.id
    WHERE (?5 IS NULL OR s.state = ?5) AND (?6 IS NULL OR j.kind = ?6) AND (?7 IS NULL OR j.queue = ?7) AND (?8 IS NULL OR j.key = ?8)
      AND (?9 IS NULL OR j.created_at_ms >= ?9) AND (?10 IS NULL OR j.created_at_ms < ?10)
      AND (?11 IS NULL OR s.state = 'failed' AND (
              SELECT max(h.at_ms) FROM milepost_history h WHERE h.job_id = s.id AND h.to_state = 'failed') >= ?11)
      AND (?13 IS NULL OR j.payload -> ?13 = json(?14))
      AND (?12 IS NULL OR EXISTS (
              SELECT 1 FROM milepost_history h
              WHERE h.job_id = s.id AND (h.error_code = ?12 OR instr(lower(h.error_message), lower(?12)) > 0)))
    ORDER BY s.id DESC
    LIMIT ?3
)
SELECT f.*, r.looked_to
FROM (SELECT CASE WHEN count(*) = ?4 THEN min(id) END AS looked_to FROM looked_at) r
LEFT JOIN found f
ORDER BY f.id DESC
