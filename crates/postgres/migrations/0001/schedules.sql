-- Schedules: recurring work. A tick enqueues jobs; each job records the tick that it is for.

create type milepost.schedule_source as enum ('operator', 'config');

-- spec: a cron expression in the time of time_zone, or @every and an interval.
-- version: rises with every change; a tick is applied only if the version is the one for which it was computed. It starts at
-- the time of creation, so that a schedule that is removed and created again never has an earlier version.
-- next_at: the first tick that has not been processed.
-- fired, dropped: the number of jobs that its ticks enqueued, and of missed ticks that enqueued none.
-- dag: the DAG whose batches the schedule starts. payload is then their input, and the other settings of jobs are ignored.
-- refused_at, refusal: the last tick whose batch could not be started, and the reason.
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
    dropped bigint not null default 0,
    dag text,
    refused_at timestamptz,
    refusal text
);

create index schedule_due on milepost.schedule (next_at) where paused_at is null;
