-- Returns a session that has not expired, with its token or person. ?1 id, ?2 last used after this time, ?3 began after this time, ?4 the id is to be
-- changed if it was issued at or before this time, ?5 a previous id is valid if it was replaced after this time
SELECT t.prefix, t.name, t.hash, t.role, t.created_at_ms, t.created_by, t.starts_at_ms, t.expires_at_ms, t.revoked_at_ms, t.last_used_at_ms,
       t.scope,
       s.csrf, s.id = ?1 AND s.rotated_at_ms <= ?4, s.seen_at_ms, s.id, s.person, s.role, s.granted_by
FROM milepost_console_session s LEFT JOIN milepost_access_token t ON t.prefix = s.token
WHERE (s.id = ?1 OR s.former_id = ?1 AND s.rotated_at_ms > ?5) AND s.seen_at_ms > ?2 AND s.began_at_ms > ?3
