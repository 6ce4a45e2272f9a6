-- Gives the failures of bulk job ?1 that nobody tries again to bulk job ?2: also those that a run was to, and was given up
-- before it came to them.
UPDATE milepost_bulk_failure SET retried_by = ?2
WHERE job_id = ?1
  AND (retried_by IS NULL
       OR EXISTS (SELECT 1
                  FROM milepost_ended e
                  JOIN milepost_bulk b ON b.job_id = e.id
                  WHERE e.id = milepost_bulk_failure.retried_by AND e.state IN ('canceled', 'skipped')
                    AND (b.cursor_key IS NULL OR milepost_bulk_failure.pos > b.cursor_key ->> 0)))
