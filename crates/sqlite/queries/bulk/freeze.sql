-- Records the last target ?3 (NULL: there are no targets) of bulk job ?1 for run token ?2, and the number of targets ?4, which is exact or
-- estimated (?5), at ?6.
UPDATE milepost_bulk
SET upper_key = ?3, total = ?4, total_exact = ?5, surveyed_at_ms = ?6, updated_at_ms = ?6, throttle = NULL,
    throttle_since_ms = NULL
WHERE job_id = ?1 AND token = ?2 AND ended_at_ms IS NULL
