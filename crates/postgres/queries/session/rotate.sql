-- Changes the id of a session, unless it has changed already. $1 id, $2 new id
update milepost.console_session set id = $2::bytea, former_id = id, rotated_at = now() where id = $1::bytea
