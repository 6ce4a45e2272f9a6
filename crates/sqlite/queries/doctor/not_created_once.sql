-- Jobs that their history does not create exactly once.
SELECT count(*) OVER () AS count, c.id AS what, 'its history creates it ' || c.entries || ' times' AS detail
FROM (
    SELECT j.id, (SELECT count(*) FROM history h WHERE h.job_id = j.id AND h.verb = 'create') AS entries
    FROM job j
) c
WHERE c.entries <> 1
ORDER BY what
LIMIT 10
