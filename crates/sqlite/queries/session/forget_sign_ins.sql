-- Deletes sign-ins with a provider that began before ?1, and the oldest of more than ?2.
DELETE FROM milepost_console_sign_in WHERE id IN (
    SELECT id FROM milepost_console_sign_in
    WHERE began_at_ms < ?1 OR began_at_ms <= (SELECT began_at_ms FROM milepost_console_sign_in ORDER BY began_at_ms DESC LIMIT 1 OFFSET ?2)
    LIMIT 1000
)
