-- Ends a session. ?1 its id, or the previous one
DELETE FROM milepost_console_session WHERE id = ?1 OR former_id = ?1
