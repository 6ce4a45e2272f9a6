-- Returns whether any token has not been revoked.
SELECT EXISTS (SELECT 1 FROM milepost_access_token WHERE revoked_at_ms IS NULL)
