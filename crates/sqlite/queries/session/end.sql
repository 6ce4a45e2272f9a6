-- Ends a session. ?1 its id, or the one before
DELETE FROM milepost_console_session WHERE id = ?1 OR former_id = ?1
