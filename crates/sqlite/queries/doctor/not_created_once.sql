-- Jobs whose history does not contain exactly one creation. Retention may have deleted the first entries of a job that ended once.
SELECT count(*) OVER () AS count, c.id AS what, 'creations in its history: ' || c.entries AS detail
FROM (
    SELECT j.id, (SELECT count(*) FROM milepost_history h WHERE h.job_id = j.id AND h.verb = 'create') AS entries
    FROM milepost_job j
) c
WHERE c.entries <> 1
  AND NOT (c.entries = 0 AND EXISTS (
    SELECT 1 FROM milepost_history h WHERE h.job_id = c.id AND h.to_state IN ('succeeded', 'canceled', 'skipped', 'failed')))
ORDER BY what
LIMIT 10
