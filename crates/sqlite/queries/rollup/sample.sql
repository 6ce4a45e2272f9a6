-- A random sample of about ?3 of all changes after position ?1, up to position ?2: of those that are starts and ends of jobs, the minute, verb, queue, kind, and
-- ms in the state before (null: not known).
SELECT h.at_ms / 60000 * 60, h.verb, j.queue, j.kind,
       CASE WHEN p.to_state IN ('pending', 'retry_wait', 'running')
            THEN max(h.at_ms - max(p.at_ms, coalesce(p.ready_at_ms, p.at_ms)), 0) END
FROM milepost_history h
LEFT JOIN milepost_job j ON j.id = h.job_id
LEFT JOIN milepost_history p ON p.pos = (SELECT max(b.pos) FROM milepost_history b WHERE b.job_id = h.job_id AND b.pos < h.pos)
WHERE h.pos > ?1 AND h.pos <= ?2 AND h.verb IN ('claim', 'succeed', 'retry', 'fail')
      AND abs(random() % 1000000) * (?2 - ?1) < ?3 * 1000000
