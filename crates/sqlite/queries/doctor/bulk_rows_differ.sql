-- Files of runs with a different number of rows than were staged. A file that retention has started to delete no longer has a run.
SELECT count(*) OVER () AS count, f.run AS what,
       f.rows || ' rows were staged, ' || coalesce(t.found, 0) || ' are stored' AS detail
FROM milepost_bulk_file f
LEFT JOIN (
    SELECT run, count(*) AS found, min(n) AS first, max(n) AS last FROM milepost_bulk_target GROUP BY run
) t ON t.run = f.run
WHERE f.started_at_ms IS NOT NULL
  AND EXISTS (SELECT 1 FROM milepost_bulk b WHERE b.origin = f.run)
  AND (coalesce(t.found, 0), coalesce(t.first, 1), coalesce(t.last, 0)) <> (f.rows, 1, f.rows)
ORDER BY what
LIMIT 10
