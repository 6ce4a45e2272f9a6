-- Begins a session. ?1 id, ?2 CSRF token of its forms, ?3 now, ?4 prefix of its token; or of a person: ?5 name, ?6 role, ?7 hash of the rule
-- that grants it
INSERT INTO milepost_console_session (id, csrf, began_at_ms, seen_at_ms, rotated_at_ms, token, person, role, granted_by)
VALUES (?1, ?2, ?3, ?3, ?3, ?4, ?5, ?6, ?7)
