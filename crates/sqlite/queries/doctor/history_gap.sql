-- Entries that do not start in the state in which the previous one ended. Retention may have deleted the first entries of a job that ended
-- once.
SELECT count(*) OVER () AS count, h.job_id AS what, 'entry ' || h.pos || ' starts from ' || coalesce(h.from_state, 'nothing') || ', the previous entry ended in '
       || coalesce(h.before, 'nothing') AS detail
FROM (
    SELECT job_id, pos, verb, from_state, to_state, row_number() OVER (PARTITION BY job_id ORDER BY pos) AS nth,
           lag(to_state) OVER (PARTITION BY job_id ORDER BY pos) AS before,
           max(to_state IN ('succeeded', 'canceled', 'skipped', 'failed')) OVER (PARTITION BY job_id) AS was_over
    FROM milepost_history
) h
WHERE h.from_state IS DISTINCT FROM h.before
  AND NOT (h.nth = 1 AND h.verb <> 'create' AND h.was_over)
ORDER BY h.pos
LIMIT 10
