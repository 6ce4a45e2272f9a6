-- Records that the message of claim ?2 to target ?1 was not delivered. ?3 now, ?4 the earliest time of the next attempt, ?5 the error
UPDATE milepost_alert_target
SET claimed_until_ms = NULL, next_at_ms = ?4, failing_since_ms = coalesce(failing_since_ms, ?3),
    failures = min(failures, 1000000) + 1, last_error = ?5
WHERE name = ?1 AND claim = ?2 AND claimed_until_ms IS NOT NULL
