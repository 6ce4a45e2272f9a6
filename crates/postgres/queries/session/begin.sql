-- Begins a session and deletes old ones. $1 id, $2 CSRF value of its forms, $3 age in ms from which a session is old, $4 prefix of its
-- token; or of a person: $5 name, $6 role, $7 hash of the rule that grants it
with forgotten as (
    delete from milepost.console_session where began_at < now() - $3::bigint * interval '1 millisecond'
)
insert into milepost.console_session (id, csrf, token, person, role, granted_by)
values ($1::bytea, $2::text, $4::text, $5::text, $6::text, $7::bytea)
