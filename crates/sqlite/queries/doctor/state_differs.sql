-- Jobs whose state differs from the last state in their history.
SELECT count(*) OVER () AS count, d.id AS what, 'its state is ' || d.state || ', the last one in its history is ' || d.told AS detail
FROM (
    SELECT s.id, s.state, (SELECT h.to_state FROM milepost_history h WHERE h.job_id = s.id ORDER BY h.pos DESC LIMIT 1) AS told
    FROM (SELECT id, state, token, attempt, max_attempts FROM milepost_live
      UNION ALL SELECT id, state, token, attempt, max_attempts FROM milepost_ended) s
) d
WHERE d.told <> d.state
ORDER BY what
LIMIT 10
