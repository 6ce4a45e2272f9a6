-- Changes the id of a session, unless somebody has. $1 id, $2 its next one
update milepost.console_session set id = $2::bytea, former_id = id, rotated_at = now() where id = $1::bytea
