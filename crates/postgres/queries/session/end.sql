-- Ends a session. $1 its current or former id
delete from milepost.console_session where id = $1::bytea or former_id = $1
