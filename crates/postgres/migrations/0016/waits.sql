-- Waits of tasks, and the signals that end them. See crates/postgres/sql/waits.sql and docs/adr/0039-waits.md.

-- Tasks that wait, or that have waited, in their last generation. signal: null if the task waits for a time only. until: null without a limit.
-- on_timeout: the state of the task after that time. check_at: when the wait is checked next: now for a new one, then `until`; null if nothing
-- can end it but an operator or a signal. output: the payload of the signal that ended it.
create table milepost.batch_wait (
    batch_id uuid not null,
    task int not null,
    signal text,
    since timestamptz not null default now(),
    until timestamptz,
    on_timeout milepost.task_state not null check (on_timeout in ('failed', 'skipped', 'succeeded')),
    check_at timestamptz,
    output jsonb,
    constraint batch_wait_output_text check (pg_column_size(output) < 8000 or octet_length(output::text) <= 268435456),
    primary key (batch_id, task)
);

create index batch_wait_check on milepost.batch_wait (check_at) where check_at is not null;

-- Signals. state: kept (a wait can use it), used (it ended a wait), or unused (a rerun discarded it). is_new: no check of the wait has seen it yet.
create table milepost.batch_signal (
    batch_id uuid not null,
    id text not null,
    pos bigint generated always as identity,
    name text not null,
    payload jsonb not null,
    sent_at timestamptz not null default now(),
    state text not null default 'kept' check (state in ('kept', 'used', 'unused')),
    is_new boolean default true,
    constraint batch_signal_payload_text check (pg_column_size(payload) < 8000 or octet_length(payload::text) <= 268435456),
    primary key (batch_id, id)
);

create index batch_signal_new on milepost.batch_signal (pos) where is_new;
create index batch_signal_kept on milepost.batch_signal (batch_id, name, pos) where state = 'kept';

-- The tasks of a version that wait for a signal, by its name.
create index dag_task_signal on milepost.dag_task (version_id, (spec #>> '{wait,signal}')) where spec ? 'wait';

-- It has another parameter from this version on.
drop function if exists milepost.move_tasks(uuid[], int[], milepost.task_state[], text[]);
