-- Begins a session and forgets old ones. $1 id, $2 prefix of its token, $3 what its forms carry, $4 after how many ms a session is old
with forgotten as (
    delete from milepost.console_session where began_at < now() - $4::bigint * interval '1 millisecond'
)
insert into milepost.console_session (id, token, csrf) values ($1::bytea, $2::text, $3::text)
