-- Settings, failures and staged rows of bulk jobs that do not exist. Settings can be stored before the first chunk, when the bulk job has
-- no row in milepost_bulk. A failure belongs to the run that retries it, otherwise to its own run. Files that retention deletes are
-- reported only if they have been unused for 3 hours. ?1 the examination (JSON)
SELECT count(*) OVER () AS count, r.job_id AS what, r.detail
FROM (
    SELECT s.job_id, 'a row of settings' AS detail
    FROM milepost_bulk_setting s
    WHERE NOT EXISTS (SELECT 1 FROM milepost_job j WHERE j.id = s.job_id)
    UNION ALL
    SELECT coalesce(f.retried_by, f.job_id), count(*) || ' failures'
    FROM milepost_bulk_failure f
    WHERE NOT EXISTS (SELECT 1 FROM milepost_bulk b WHERE b.job_id = coalesce(f.retried_by, f.job_id))
    GROUP BY coalesce(f.retried_by, f.job_id)
    UNION ALL
    SELECT t.run, count(*) || ' staged rows without a file'
    FROM milepost_bulk_target t
    WHERE NOT EXISTS (SELECT 1 FROM milepost_bulk_file f WHERE f.run = t.run)
    GROUP BY t.run
    UNION ALL
    SELECT f.run, 'a staged file'
    FROM milepost_bulk_file f
    WHERE f.touched_at_ms < (?1 ->> 'now_ms') - 10800000
      AND (f.started_at_ms IS NULL OR NOT EXISTS (SELECT 1 FROM milepost_bulk b WHERE b.origin = f.run))
) r
ORDER BY what, r.detail
LIMIT 10
