-- Records that a token was used, at most once a minute. ?1 its prefix, ?2 now
UPDATE milepost_access_token SET last_used_at_ms = ?2 WHERE prefix = ?1 AND coalesce(last_used_at_ms, 0) < ?2 - 60000
