-- Ends the sessions of a token. ?1 its prefix
DELETE FROM milepost_console_session WHERE token = ?1
