-- Begins a session and deletes old ones. $1 id, $2 prefix of its token, $3 CSRF value of its forms, $4 age in ms from which
-- a session is old
with forgotten as (
    delete from milepost.console_session where began_at < now() - $4::bigint * interval '1 millisecond'
)
insert into milepost.console_session (id, token, csrf) values ($1::bytea, $2::text, $3::text)
