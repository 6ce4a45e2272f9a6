-- Batches: DAGs and their versions, batches and their tasks as narrow rows of counters.

-- Where a task stands; TaskState in the library.
create type milepost.task_state as enum
    ('waiting', 'due', 'active', 'failed', 'aborted', 'succeeded', 'skipped', 'canceled');
create type milepost.task_rule as enum
    ('all_success', 'all_done', 'one_success', 'one_failed', 'none_failed', 'always');
create type milepost.batch_state as enum ('running', 'done', 'failed', 'aborted', 'canceled');

-- A version of a DAG: never changed. version: the SHA-256 of its canonical form, as 64 hexadecimal digits.
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

-- Which version a batch gets that names none.
create table milepost.dag (
    name text primary key,
    latest bigint not null,
    updated_at timestamptz not null default now()
);

-- The tasks of a version, by number: the place of the key among all keys in order.
-- plain: a job whose payload is ready, so that it needs no more than its counters to run. spec: all else that
-- the definition says. reads: the predecessors whose results its expressions read.
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

-- A run of a version. The counts are of its tasks by state.
-- stop: what an operator wants: nothing starts. items_of: its tasks are the items of a list (its input) over which this
-- task of the parent's version goes. nominal_zone: the time zone of the date of nominal_at.
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

-- What a batch was started with. Apart from its counts: a row that changes is written anew.
create table milepost.batch_input (
    batch_id uuid primary key,
    input jsonb not null
);

create unique index batch_key on milepost.batch (dag, key) where key is not null;
create index batch_due on milepost.batch (id) where due > 0 and stop is null;
create index batch_ended on milepost.batch (ended_at) where ended_at is not null and parent_id is null;
create index batch_parent on milepost.batch (parent_id) where parent_id is not null;

-- A task of a batch. pre_cnt: predecessors that have not ended; the four others: those that have, by how.
-- job_id: its job, in the generation in which it was decided last; child_id: the batch that it is. is_due: set while the state is
-- due. No index depends on the state itself, or every change of it would write to all indexes.
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

-- Ends whose successors are too many for one transaction: those up to position are counted.
create table milepost.batch_spread (
    pos bigint generated always as identity primary key,
    batch_id uuid not null,
    task int not null,
    was milepost.task_state not null,
    state milepost.task_state not null,
    position int not null default 0
);

create index batch_spread_task on milepost.batch_spread (batch_id, task);

-- What happened to batches, and to tasks that had no job then. task: null for the batch itself, and for tasks that its version does not
-- have any more: these have their key. job_id: the job that the task had, where this took it away.
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

-- The task that a job was made for. What else is in job never changes; the number does when its batch goes over to another version,
-- in which the task has another one or (null) is not any more. A job that is run again by itself is no task.
alter table milepost.job add column batch_id uuid;
alter table milepost.job add column task int;

-- dag: what the schedule starts batches of. Then payload is their input, and what else is of jobs says nothing.
-- refused_at, refusal: the last tick, if its batch could not be started, and why.
alter table milepost.schedule add column dag text;
alter table milepost.schedule add column refused_at timestamptz;
alter table milepost.schedule add column refusal text;
