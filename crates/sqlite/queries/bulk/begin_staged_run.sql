-- Records that job ?1 is a bulk job over its ?2 staged rows, so that its last target is already known, at ?3.
INSERT INTO milepost_bulk (job_id, origin, surveyed_at_ms, upper_key, total, total_exact)
VALUES (?1, ?1, ?3, CASE WHEN ?2 > 0 THEN json_array(?2) END, ?2, 1)
