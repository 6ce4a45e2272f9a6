-- Revokes a token. ?1 its prefix, ?2 now
UPDATE milepost_access_token SET revoked_at_ms = ?2 WHERE prefix = ?1 AND revoked_at_ms IS NULL
