-- Bulk jobs whose failure count differs from their stored failures. Fewer may be stored if they were assigned to a run that retried them
-- and has been deleted, or if retention has started to delete a job that ended once.
SELECT count(*) OVER () AS count, d.job_id AS what, 'counted ' || d.failed || ' failures, ' || d.found || ' are stored' AS detail
FROM (
    SELECT b.job_id, b.failed, coalesce(f.found, 0) AS found, coalesce(s.given, 0) AS given
    FROM milepost_bulk b
    LEFT JOIN (SELECT job_id, count(*) AS found FROM milepost_bulk_failure GROUP BY job_id) f ON f.job_id = b.job_id
    LEFT JOIN milepost_bulk_setting s ON s.job_id = b.job_id
) d
WHERE d.found > d.failed
   OR d.found < d.failed - d.given
      AND EXISTS (SELECT 1 FROM milepost_history h WHERE h.job_id = d.job_id AND h.verb = 'create')
      AND NOT EXISTS (
          SELECT 1 FROM milepost_history h
          WHERE h.job_id = d.job_id AND h.to_state IN ('succeeded', 'canceled', 'skipped', 'failed')
      )
ORDER BY what
LIMIT 10
