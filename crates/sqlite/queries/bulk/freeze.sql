-- Keeps the last target ?3 (NULL: there is none) of bulk job ?1 for run token ?2, and that there are ?4 targets, counted or
-- not (?5), at ?6.
UPDATE milepost_bulk
SET upper_key = ?3, total = ?4, total_exact = ?5, surveyed_at_ms = ?6, updated_at_ms = ?6, throttle = NULL,
    throttle_since_ms = NULL
WHERE job_id = ?1 AND token = ?2 AND ended_at_ms IS NULL
