-- Stores a token and records its creator in the audit log; no row if its name is taken. $1 prefix, $2 name, $3 hash, $4
-- role, $5 who, $6 when it becomes valid (null: now), $7 lifetime in ms (null: unlimited), $8 the reason, $9 the queues and
-- kinds that it is limited to, as JSON (null: all)
with made as (
    insert into milepost.access_token (prefix, name, hash, role, created_by, starts_at, expires_at, scope)
    select $1::text, $2::text, $3::bytea, $4::text, $5::text, start.at,
           case when $7::bigint is not null
                then least(start.at + $7 * interval '1 millisecond', timestamptz '9999-12-30 00:00+00') end,
           $9::text
    from (select coalesce($6::timestamptz, now()) as at) start
    on conflict do nothing
    returning *
),
noted as (
    insert into milepost.audit (who, what, subject, why, detail)
    select created_by, 'token.create', name, $8::text,
           jsonb_build_object('after', jsonb_build_object('prefix', prefix, 'role', role, 'starts_at', starts_at, 'expires_at', expires_at)
               || case when scope is null then '{}'::jsonb else jsonb_build_object('scope', scope::jsonb) end)
    from made
)
select *, now() as at from made
