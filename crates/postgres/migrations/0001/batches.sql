-- Batches: DAGs and their versions, batches, and their tasks as narrow rows of counters.

-- The state of a task; TaskState in the library.
create type milepost.task_state as enum
    ('waiting', 'due', 'active', 'failed', 'aborted', 'succeeded', 'skipped', 'canceled');
create type milepost.task_rule as enum
    ('all_success', 'all_done', 'one_success', 'one_failed', 'none_failed', 'always');
create type milepost.batch_state as enum ('running', 'done', 'failed', 'aborted', 'canceled');

-- Versions of DAGs, which are never changed. version: the SHA-256 of the canonical form, as 64 hexadecimal digits.
create table milepost.dag_version (
    id bigint generated always as identity primary key,
    name text not null,
    number int not null,
    version text not null,
    canonical text not null,
    input_schema jsonb,
    tasks int not null,
    edges int not null,
    depth int not null,
    created_at timestamptz not null default now(),
    unique (name, version),
    unique (name, number)
);

-- The version of batches that are started without one.
create table milepost.dag (
    name text primary key,
    latest bigint not null,
    updated_at timestamptz not null default now()
);

-- The tasks of a version, by number: the position of the key among all keys in order.
-- plain: a job without expressions, so that its counters are sufficient to run it. spec: the rest of the definition.
-- reads: the predecessors whose results its expressions read.
create table milepost.dag_task (
    version_id bigint not null,
    task int not null,
    rule milepost.task_rule not null,
    plain boolean not null,
    pre_cnt int not null,
    key text not null,
    successors int[] not null,
    predecessors int[] not null,
    reads int[] not null,
    spec jsonb not null,
    kind text,
    queue text not null,
    priority smallint not null,
    group_key text,
    max_attempts int not null,
    timeout_ms bigint,
    primary key (version_id, task)
);

create unique index dag_task_key on milepost.dag_task (version_id, key);

-- Runs of a version. The counts are the numbers of tasks by state.
-- stop: an operator has stopped the batch, so that no task starts. items_of: the tasks are the items of a list (the input),
-- and this is the number, in the parent's version, of the task that iterates over it. nominal_zone: the time zone of the
-- date of nominal_at.
create table milepost.batch (
    id uuid primary key,
    dag text not null,
    version_id bigint not null,
    key text,
    state milepost.batch_state not null,
    stop milepost.verb,
    generation int not null default 1,
    waiting int not null check (waiting >= 0),
    due int not null check (due >= 0),
    active int not null check (active >= 0),
    failed int not null check (failed >= 0),
    aborted int not null check (aborted >= 0),
    succeeded int not null check (succeeded >= 0),
    skipped int not null check (skipped >= 0),
    canceled int not null check (canceled >= 0),
    parent_id uuid,
    parent_task int,
    items_of int,
    depth int not null default 1,
    nominal_at timestamptz check (nominal_at between '0001-01-02 00:00Z' and '9999-12-30 00:00Z'),
    nominal_zone text check ((nominal_zone is null) = (nominal_at is null)),
    traceparent text,
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now(),
    ended_at timestamptz
) with (fillfactor = 50, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_scale_factor = 0);

-- Inputs of batches. A separate table, since an update copies the whole row, and the counts change often.
create table milepost.batch_input (
    batch_id uuid primary key,
    input jsonb not null
);

create unique index batch_key on milepost.batch (dag, key) where key is not null;
create index batch_due on milepost.batch (id) where due > 0 and stop is null;
create index batch_ended on milepost.batch (ended_at) where ended_at is not null and parent_id is null;
create index batch_parent on milepost.batch (parent_id) where parent_id is not null;

-- Tasks of batches. pre_cnt: the number of predecessors that have not ended; the four other counters: those that have, by
-- outcome.
-- job_id: the job of the task, in the generation in which it was decided last; child_id: the batch that the task started.
-- is_due: set while the state is due. No index contains the state itself, since every change of it would then update all
-- indexes.
create table milepost.batch_task (
    batch_id uuid not null,
    task int not null,
    generation int not null default 1,
    pre_cnt int not null check (pre_cnt >= 0),
    succeeded int not null default 0 check (succeeded >= 0),
    failed int not null default 0 check (failed >= 0),
    skipped int not null default 0 check (skipped >= 0),
    canceled int not null default 0 check (canceled >= 0),
    state milepost.task_state not null,
    job_id uuid,
    child_id uuid,
    is_due boolean generated always as (case when state = 'due' then true end) stored,
    primary key (batch_id, task)
) with (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);

create index batch_task_due on milepost.batch_task (batch_id, task) where is_due;

-- Ends of tasks with too many successors for one transaction; those up to position have been counted.
create table milepost.batch_spread (
    pos bigint generated always as identity primary key,
    batch_id uuid not null,
    task int not null,
    was milepost.task_state not null,
    state milepost.task_state not null,
    position int not null default 0
);

create index batch_spread_task on milepost.batch_spread (batch_id, task);

-- State changes of batches, and of tasks that had no job at the time. task: null for the batch itself, and for tasks that
-- the version does not contain any more, which have their key instead. job_id: the former job of the task, if this change
-- removed it.
create table milepost.batch_history (
    pos bigint generated always as identity primary key,
    xid xid8 not null default pg_current_xact_id(),
    batch_id uuid not null,
    at timestamptz not null default now(),
    generation int not null,
    task int,
    verb milepost.verb not null,
    from_state text,
    to_state text not null,
    note text,
    key text,
    job_id uuid
);

create index batch_history_batch on milepost.batch_history (batch_id, pos);
create index batch_history_task on milepost.batch_history (batch_id, task, pos) where task is not null;
create index batch_history_xid on milepost.batch_history (xid);
