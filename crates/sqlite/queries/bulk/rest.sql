-- Records for run token ?2 of bulk job ?1 the throttle reason ?3 (NULL: not throttled), and ?4 more ms of throttled time, at ?5.
UPDATE milepost_bulk
SET throttle = ?3,
    throttle_since_ms = iif(?3 IS NULL, NULL, coalesce(throttle_since_ms, ?5)),
    held_ms = held_ms + ?4,
    updated_at_ms = ?5
WHERE job_id = ?1 AND token = ?2 AND ended_at_ms IS NULL
