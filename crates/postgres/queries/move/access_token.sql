-- Imports tokens.
insert into milepost.access_token (prefix, name, hash, role, created_at, created_by, starts_at, expires_at, revoked_at, last_used_at, scope)
select * from unnest($1::text[], $2::text[], $3::bytea[], $4::text[], $5::timestamptz[], $6::text[], $7::timestamptz[], $8::timestamptz[],
                     $9::timestamptz[], $10::timestamptz[], $11::text[])
