-- Limits: rates of kinds, slots and rates of groups.
--
-- A token bucket is stored as the time at which it is full again. A start moves that time forward by the refill time of its
-- token, rounded up to a microsecond.

create table milepost.kind_limit (
    kind text primary key,
    per_second float8 not null,
    burst int not null,
    -- The minimum number of tokens in the bucket before any are given out.
    portion int not null,
    full_at timestamptz not null default now(),
    source text not null
) with (fillfactor = 50, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0);

-- name: a group, or a class prefix:*. slots: null if only the rate is limited.
create table milepost.group_limit (
    name text primary key,
    slots int,
    per_second float8,
    burst int,
    portion int,
    source text not null
);

-- One row for each group that has a rate and was used recently. Written only by milepost.pace().
-- look_at: when to check the group again; null while it waits for a slot, since the release of a slot is noted.
create table milepost.group_bucket (
    group_key text primary key,
    full_at timestamptz not null,
    look_at timestamptz
) with (fillfactor = 50);

create index group_bucket_look on milepost.group_bucket (look_at) where look_at is not null;

-- Events in groups with a rate since the last check: a job arrived or a slot was released (starts = 0), or this number of
-- jobs will start once more without being released again. Rows are only inserted, so that no transaction waits for the lock
-- of a bucket; milepost.pace() deletes them.
create table milepost.group_note (
    group_key text not null,
    starts int not null
);

-- Slots of groups without a slot limit are numbered from here.
create sequence milepost.group_slot_beyond minvalue 100000;
