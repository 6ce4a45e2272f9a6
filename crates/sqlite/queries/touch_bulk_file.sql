-- Records that the file of the run, or of the run whose failures it retried, was used, so that retention considers it. ?1 run, ?2 now
UPDATE milepost_bulk_file SET touched_at_ms = ?2
WHERE started_at_ms IS NOT NULL AND run = (SELECT origin FROM milepost_bulk WHERE job_id = ?1)
