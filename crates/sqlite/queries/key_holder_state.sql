-- Returns the job that owns a key: its id, state, run token, when it was created, when it ended or failed permanently, its queue and
-- group. NULL: it was deleted. ?1 kind, ?2 key
SELECT k.job_id, coalesce(l.state, e.state), coalesce(l.token, e.token), j.created_at_ms,
       coalesce(e.ended_at_ms, k.job_ended_at_ms, iif(l.state = 'failed', (
           SELECT h.at_ms FROM milepost_history AS h WHERE h.job_id = k.job_id AND h.to_state = 'failed' AND h.verb <> 'edit'
           ORDER BY h.pos DESC LIMIT 1), NULL)),
       j.queue, j.group_key
FROM milepost_job_key AS k
LEFT JOIN milepost_job AS j ON j.id = k.job_id
LEFT JOIN milepost_live AS l ON l.id = k.job_id
LEFT JOIN milepost_ended AS e ON e.id = k.job_id
WHERE k.kind = ?1 AND k.key = ?2
