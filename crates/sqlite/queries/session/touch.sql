-- Records that a session was used. ?1 its id, or the previous one, ?2 now
UPDATE milepost_console_session SET seen_at_ms = max(seen_at_ms, ?2) WHERE id = ?1 OR former_id = ?1
