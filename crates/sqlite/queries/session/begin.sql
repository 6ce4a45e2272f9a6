-- Begins a session. ?1 id, ?2 prefix of its token, ?3 CSRF token of its forms, ?4 now
INSERT INTO milepost_console_session (id, token, csrf, began_at_ms, seen_at_ms, rotated_at_ms) VALUES (?1, ?2, ?3, ?4, ?4, ?4)
