-- Jobs that have not ended and whose batch does not exist. A job that was rerun separately after its batch was deleted does not count.
SELECT count(*) OVER () AS count, j.id AS what, 'of batch ' || lower(hex(j.batch_id)) AS detail
FROM milepost_live l
CROSS JOIN milepost_job j ON j.id = l.id
WHERE j.batch_id IS NOT NULL
  AND NOT EXISTS (SELECT 1 FROM milepost_batch b WHERE b.id = j.batch_id)
  AND NOT EXISTS (SELECT 1 FROM milepost_history h WHERE h.job_id = j.id AND h.verb = 'rerun')
ORDER BY what
LIMIT 10
