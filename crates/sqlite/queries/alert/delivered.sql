-- Records that the message of claim ?2 to target ?1 was delivered. ?3 now
UPDATE milepost_alert_target
SET claimed_until_ms = NULL, next_at_ms = NULL, sent_at_ms = ?3, failing_since_ms = NULL, failures = 0, last_error = NULL
WHERE name = ?1 AND claim = ?2 AND claimed_until_ms IS NOT NULL
