-- Changes the id of a session, unless it has already changed. ?1 id, ?2 its next one, ?3 now
UPDATE milepost_console_session SET id = ?2, former_id = id, rotated_at_ms = ?3 WHERE id = ?1
