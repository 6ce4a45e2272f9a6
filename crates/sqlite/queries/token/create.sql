-- Stores a token; changes nothing if its name is taken. ?1 prefix, ?2 name, ?3 hash, ?4 role, ?5 now, ?6 who, ?7 when it starts, ?8 when it
-- expires, ?9 the queues and kinds that it is limited to, as JSON (null: all)
INSERT INTO milepost_access_token (prefix, name, hash, role, created_at_ms, created_by, starts_at_ms, expires_at_ms, scope)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) ON CONFLICT DO NOTHING
