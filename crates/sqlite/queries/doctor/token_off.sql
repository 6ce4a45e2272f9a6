-- Entries whose token is not the one before them, or for a claim not above it. Retention may have taken the first
-- ones of a job that was over once.
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
