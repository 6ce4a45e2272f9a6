-- Schedules: recurring work. A tick enqueues jobs; each job records the tick that it is for.

alter table milepost.job add column nominal_at timestamptz check (nominal_at between '0001-01-02 00:00Z' and '9999-12-30 00:00Z');

-- The new version has one more array; with both versions, calls would be ambiguous.
drop function if exists milepost.enqueue_many(
    text[], jsonb[], text[], text[], int[], text[], timestamptz[], bigint[], int[], bigint[], uuid[], bigint);

create type milepost.schedule_source as enum ('operator', 'config');

-- spec: a cron expression in the time of time_zone, or @every and an interval.
-- version: rises with every change; a tick is applied only if the version is the one for which it was computed. It starts at
-- the time of creation, so that a schedule that is removed and created again never has an earlier version.
-- next_at: the first tick that has not been processed.
-- fired, dropped: the number of jobs that its ticks enqueued, and of missed ticks that enqueued none.
create table milepost.schedule (
    name text primary key,
    spec text not null,
    time_zone text not null,
    kind text not null,
    queue text not null,
    payload jsonb not null,
    priority smallint not null,
    max_attempts int not null,
    group_key text,
    timeout_ms bigint,
    misfire text not null,
    misfire_max int,
    misfire_grace_ms bigint not null,
    source milepost.schedule_source not null,
    version bigint not null default (extract(epoch from clock_timestamp()) * 1000000)::bigint,
    paused_at timestamptz,
    next_at timestamptz,
    last_at timestamptz,
    fired bigint not null default 0,
    dropped bigint not null default 0
);

create index schedule_due on milepost.schedule (next_at) where paused_at is null;
