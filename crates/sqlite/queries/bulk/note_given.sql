-- Records that ?2 failures of bulk job ?1 were assigned to a run that retries them, at ?3.
INSERT INTO milepost_bulk_setting AS s (job_id, given, set_at_ms) VALUES (?1, ?2, ?3)
ON CONFLICT (job_id) DO UPDATE SET given = s.given + excluded.given
