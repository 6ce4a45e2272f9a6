-- Imports subscriptions. The imported log was committed before: in every slot, the events above position $5 are still to be
-- published, and no transaction was in flight.
with brought as (
    select * from unnest($1::text[], $2::timestamptz[], $3::timestamptz[], $4::text[], $5::bigint[], $6::timestamptz[], $7::bigint[])
        as r(name, made_at, paused_at, paused_why, pos, advanced_at, token)
),
made as (
    insert into milepost.subscription (name, made_at, log_identity, paused_at, paused_why)
    select r.name, r.made_at, milepost.log_identity(), r.paused_at, r.paused_why from brought r
),
slots as (
    insert into milepost.subscription_slot (subscription, slot, token)
    select r.name, slot, r.token from brought r cross join generate_series(0, 63) slot
)
insert into milepost.slot_position (subscription, slot, seen, floor, advanced_at)
select r.name, slot, '1:1:', r.pos, r.advanced_at from brought r cross join generate_series(0, 63) slot
