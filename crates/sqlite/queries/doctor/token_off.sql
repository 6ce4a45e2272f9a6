-- Entries whose token is not the one before them, or one more for a claim.
SELECT count(*) OVER () AS count, h.job_id AS what, 'entry ' || h.pos || ' (' || h.verb || ') has token ' || h.token || ' after ' || h.before AS detail
FROM (
    SELECT job_id, pos, verb, token, coalesce(lag(token) OVER (PARTITION BY job_id ORDER BY pos), 0) AS before
    FROM history
) h
WHERE h.token <> h.before + CASE WHEN h.verb = 'claim' THEN 1 ELSE 0 END
ORDER BY h.pos
LIMIT 10
