-- Entries whose token differs from the previous one, or for a claim is not higher. Retention may have deleted the first entries of a job
-- that ended once.
SELECT count(*) OVER () AS count, h.job_id AS what, 'entry ' || h.pos || ' (' || h.verb || ') has token ' || h.token || ' after ' || h.before AS detail
FROM (
    SELECT job_id, pos, verb, token, to_state, row_number() OVER (PARTITION BY job_id ORDER BY pos) AS nth,
           coalesce(lag(token) OVER (PARTITION BY job_id ORDER BY pos), 0) AS before,
           max(to_state IN ('succeeded', 'canceled', 'skipped', 'failed')) OVER (PARTITION BY job_id) AS was_over
    FROM milepost_history
) h
WHERE CASE WHEN h.verb = 'claim' THEN h.token <= h.before ELSE h.token <> h.before END
  AND NOT (h.nth = 1 AND h.verb <> 'create' AND h.was_over)
ORDER BY h.pos
LIMIT 10
