-- Jobs that their history does not create exactly once. Retention may leave of a job that is over its last entry.
SELECT count(*) OVER () AS count, c.id AS what, 'its history creates it ' || c.entries || ' times' AS detail
FROM (
    SELECT j.id, (SELECT count(*) FROM milepost_history h WHERE h.job_id = j.id AND h.verb = 'create') AS entries
    FROM milepost_job j
) c
WHERE c.entries <> 1
  AND NOT (c.entries = 0 AND coalesce(
    (SELECT h.to_state FROM milepost_history h WHERE h.job_id = c.id ORDER BY h.pos LIMIT 1) IN ('succeeded', 'canceled', 'skipped', 'failed'), false))
ORDER BY what
LIMIT 10
