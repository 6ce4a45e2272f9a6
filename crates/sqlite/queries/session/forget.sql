-- Deletes sessions that began before ?1.
DELETE FROM milepost_console_session WHERE began_at_ms < ?1
