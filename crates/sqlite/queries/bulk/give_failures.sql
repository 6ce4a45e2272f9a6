-- Assigns failures of bulk job ?1 to bulk job ?2: those that no run retries, and those that were assigned to a run that was canceled or
-- skipped before it reached them.
UPDATE milepost_bulk_failure SET retried_by = ?2
WHERE job_id = ?1
  AND (retried_by IS NULL
       OR EXISTS (SELECT 1
                  FROM milepost_ended e
                  JOIN milepost_bulk b ON b.job_id = e.id
                  WHERE e.id = milepost_bulk_failure.retried_by AND e.state IN ('canceled', 'skipped')
                    AND (b.cursor_key IS NULL OR milepost_bulk_failure.pos > b.cursor_key ->> 0)))
