-- Ends a session. $1 its id, or the one before
delete from milepost.console_session where id = $1::bytea or former_id = $1
