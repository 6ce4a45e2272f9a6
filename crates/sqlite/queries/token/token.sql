-- Returns a token. ?1 its prefix
SELECT prefix, name, hash, role, created_at_ms, created_by, starts_at_ms, expires_at_ms, revoked_at_ms, last_used_at_ms, scope
FROM milepost_access_token WHERE prefix = ?1
