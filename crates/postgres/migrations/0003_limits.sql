-- Limits: rates of kinds, slots and rates of groups.
--
-- A bucket is kept as the time at which it is full again. A start moves that time on by what its token takes
-- to come back, rounded up to a microsecond.

create table milepost.kind_limit (
    kind text primary key,
    per_second float8 not null,
    burst int not null,
    -- How many tokens must be there before any is given out.
    portion int not null,
    full_at timestamptz not null default now(),
    source text not null
) with (fillfactor = 50, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0);

-- name: a group, or a class prefix:*. slots: null without a limit to them, where there is a rate.
create table milepost.group_limit (
    name text primary key,
    slots int,
    per_second float8,
    burst int,
    portion int,
    source text not null
);

-- One a group that has a rate and was used lately. Only milepost.pace() writes here.
-- look_at: when to look at the group again; null while it waits for a slot, whose end is noted.
create table milepost.group_bucket (
    group_key text primary key,
    full_at timestamptz not null,
    look_at timestamptz
) with (fillfactor = 50);

create index group_bucket_look on milepost.group_bucket (look_at) where look_at is not null;

-- What happened to groups that have a rate since they were last looked at: somebody came or a slot became
-- free (starts = 0), or so many of their jobs will start once more without being released again. Only added
-- to, so that nobody ever waits for a bucket; milepost.pace() takes the rows away.
create table milepost.group_note (
    group_key text not null,
    starts int not null
);

-- Slots of groups that have no limit to them are numbered from here.
create sequence milepost.group_slot_beyond minvalue 100000;

alter table milepost.group_slot alter column slot type bigint;
