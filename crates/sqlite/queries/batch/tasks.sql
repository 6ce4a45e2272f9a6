-- Tasks of batch ?1, by number. ?2 states as a JSON array or NULL, ?3 numbers as a JSON array or NULL, ?4 after this one,
-- ?5 how many
SELECT t.task, coalesce(d.key, CAST(t.task AS TEXT)), t.state, t.generation, t.pre_cnt, t.job_id, t.child_id,
       coalesce(l.state, e.state), coalesce(l.attempt, e.attempt), coalesce(j.created_at_ms, c.created_at_ms, w.since_ms),
       coalesce(l.started_at_ms, e.started_at_ms, w.since_ms),
       coalesce(e.ended_at_ms, c.ended_at_ms, CASE WHEN t.state IN ('succeeded', 'skipped', 'canceled') THEN (
           SELECT h.at_ms FROM milepost_batch_history h INDEXED BY milepost_batch_history_task
           WHERE h.batch_id = t.batch_id AND h.task = t.task ORDER BY h.pos DESC LIMIT 1
       ) END),
       p.done, p.total,
       CASE WHEN t.state = 'failed' OR coalesce(l.attempt, 0) > 0 THEN coalesce((
           SELECT coalesce(h.error_code || ': ', '') || h.error_message FROM milepost_history h
           WHERE h.job_id = t.job_id AND h.error_message IS NOT NULL ORDER BY h.pos DESC LIMIT 1
       ), (
           SELECT h.note FROM milepost_batch_history h INDEXED BY milepost_batch_history_task
           WHERE h.batch_id = t.batch_id AND h.task = t.task AND t.state = 'failed' ORDER BY h.pos DESC LIMIT 1
       )) END,
       CASE WHEN t.state IN ('active', 'aborted') THEN w.since_ms END, w.until_ms, w.signal, w.on_timeout,
       CASE WHEN t.state IN ('active', 'aborted') AND w.since_ms IS NOT NULL THEN d.spec -> '$.wait' END
FROM milepost_batch_task t
CROSS JOIN milepost_batch b ON b.id = t.batch_id
LEFT JOIN milepost_dag_task d ON d.version_id = b.version_id AND d.task = t.task AND b.items_of IS NULL
LEFT JOIN milepost_job j ON j.id = t.job_id
LEFT JOIN milepost_live l ON l.id = t.job_id
LEFT JOIN milepost_ended e ON e.id = t.job_id
LEFT JOIN milepost_batch c ON c.id = t.child_id
LEFT JOIN milepost_progress p ON p.job_id = t.job_id
LEFT JOIN milepost_batch_wait w ON t.job_id IS NULL AND t.child_id IS NULL AND w.batch_id = t.batch_id AND w.task = t.task
WHERE t.batch_id = ?1 AND t.task > ?4
  AND (?2 IS NULL OR t.state IN (SELECT value FROM json_each(?2)))
  AND (?3 IS NULL OR t.task IN (SELECT value FROM json_each(?3)))
ORDER BY t.task
LIMIT ?5
