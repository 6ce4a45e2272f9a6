-- Jobs whose token is not the highest in their history.
SELECT count(*) OVER () AS count, d.id AS what, 'token ' || d.token || ', the highest in its history is ' || d.told AS detail
FROM (
    SELECT s.id, s.token, (SELECT max(h.token) FROM milepost_history h WHERE h.job_id = s.id) AS told
    FROM (SELECT id, state, token, attempt, max_attempts FROM milepost_live
      UNION ALL SELECT id, state, token, attempt, max_attempts FROM milepost_ended) s
) d
WHERE d.told <> d.token
ORDER BY what
LIMIT 10
