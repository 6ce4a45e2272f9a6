-- Begins a sign-in with a provider, and deletes old ones. $1 id, $2 state, $3 nonce, $4 PKCE verifier, $5 path to go to, $6 age in ms from
-- which a sign-in is old, $7 maximum number of others
with old as (
    select id from milepost.console_sign_in
    where began_at < now() - $6::bigint * interval '1 millisecond'
       or began_at <= (select began_at from milepost.console_sign_in order by began_at desc offset $7::bigint limit 1)
    limit 1000
    for update skip locked
),
forgotten as (
    delete from milepost.console_sign_in s using old where s.id = old.id
)
insert into milepost.console_sign_in (id, state, nonce, verifier, next) values ($1::bytea, $2::bytea, $3::text, $4::text, $5::text)
