-- Jobs: requests (job), states (live, ended) and state changes (history).

create schema if not exists milepost;

create type milepost.job_state as enum
    ('blocked', 'pending', 'running', 'retry_wait', 'failed', 'aborted', 'succeeded', 'canceled', 'skipped');

create type milepost.verb as enum
    ('create', 'release', 'claim', 'succeed', 'retry', 'fail', 'yield', 'cancel', 'skip', 'mark', 'abort',
     'retry_now', 'resume', 'rerun', 'snooze');

-- Requests, as they were enqueued. Rows are never updated, except batch_id and task.
-- nominal_at: the tick of a schedule that the job is for.
-- batch_id, task: the task that the job was created for. The task number changes when the batch is moved to another version, in
-- which the task has another number, or null if it does not exist there. A job that is rerun alone is no longer a task.
create table milepost.job (
    id uuid primary key,
    kind text not null,
    queue text not null,
    payload jsonb not null,
    key text,
    group_key text,
    priority smallint not null,
    max_attempts int not null,
    timeout_ms bigint,
    -- The span of a trace that the job follows from (W3C Trace Context).
    traceparent text,
    created_at timestamptz not null,
    nominal_at timestamptz check (nominal_at between '0001-01-02 00:00Z' and '9999-12-30 00:00Z'),
    batch_id uuid,
    task int
);

-- A search by key finds all jobs that ever had the key, whether they still hold it or not.
create index job_key_id on milepost.job (key, id) where key is not null;

-- At most one job of a kind holds a key at a time.
create table milepost.job_key (
    kind text not null,
    key text not null,
    job_id uuid not null,
    -- When the job ended, if its rows have been deleted; null while they exist.
    job_ended_at timestamptz,
    primary key (kind, key)
);

create index job_key_due on milepost.job_key (job_ended_at) where job_ended_at is not null;

-- States of jobs that have not ended, and of failed and aborted ones.
-- ready_at: the time from which the job can be claimed; null if it cannot (running, blocked, failed, aborted).
-- due_at: the earliest start of a blocked job. timed: due_at is in the future, so that the job does not wait for a slot of
-- its group yet.
-- token: the fence, which every claim raises and nothing lowers.
-- failed_at: when the job failed permanently; null in every other state.
create table milepost.live (
    id uuid primary key,
    ready_at timestamptz,
    due_at timestamptz,
    started_at timestamptz,
    stop_at timestamptz,
    token int not null default 0,
    attempt int not null default 0,
    max_attempts int not null,
    worker_id int,
    claim_id int,
    state milepost.job_state not null,
    stop_verb milepost.verb,
    stop_note text,
    priority smallint not null,
    kind text not null,
    queue text not null,
    group_key text,
    timed boolean,
    failed_at timestamptz
) with (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);

create index live_ready on milepost.live (queue, kind, priority, ready_at, id) where ready_at is not null;
create index live_worker on milepost.live (worker_id) where worker_id is not null;
create index live_stop on milepost.live (stop_at) where stop_at is not null;
create index live_waiting on milepost.live (group_key, priority, due_at, id)
    where group_key is not null and due_at is not null and timed is null;
create index live_timed on milepost.live (due_at) where timed;
create index live_failed on milepost.live (failed_at) where failed_at is not null;
-- Jobs that neither wait for a worker nor run. The usual states of a job (pending, running, ended) never enter this index.
create index live_aside on milepost.live (state, id) where state <> 'pending' and state <> 'running';

-- Ended jobs: succeeded, canceled or skipped. The token is kept because a rerun continues from it.
-- shortened: whether retention has reduced the history to its last entry.
create table milepost.ended (
    id uuid primary key,
    ended_at timestamptz not null,
    started_at timestamptz,
    token int not null,
    attempt int not null,
    max_attempts int not null,
    state milepost.job_state not null,
    result jsonb,
    shortened boolean not null default false
);

create index ended_aside on milepost.ended (state, id) where state <> 'succeeded';

-- State changes: one row for each, written in the transaction that makes the change.
create table milepost.history (
    pos bigint generated always as identity,
    xid xid8 not null default pg_current_xact_id(),
    job_id uuid not null,
    at timestamptz not null default now(),
    token int not null,
    attempt int not null,
    worker_id int,
    verb milepost.verb not null,
    from_state milepost.job_state,
    to_state milepost.job_state not null,
    ready_at timestamptz,
    error_code text,
    error_message text,
    note text
);

create index history_job on milepost.history (job_id, pos);
-- For readers of the change feed: the changes since a snapshot.
create index history_xid on milepost.history (xid);

-- Progress that running jobs report, and the checkpoint from which their next attempt can continue.
create table milepost.progress (
    job_id uuid primary key,
    done bigint,
    total bigint,
    message text,
    checkpoint jsonb,
    updated_at timestamptz not null
) with (fillfactor = 70);

-- Process incarnations that run jobs, each under a lease.
create table milepost.worker (
    id int generated always as identity primary key,
    name text not null,
    queues text[] not null,
    kinds text[] not null,
    lease_ms bigint not null,
    -- Retry policies of its kinds, by kind.
    backoffs jsonb not null default '{}',
    started_at timestamptz not null,
    heartbeat_at timestamptz not null,
    lease_expires_at timestamptz not null,
    ended_at timestamptz,
    died boolean not null default false,
    -- When it was found, after its end, to hold no jobs any more.
    cleared_at timestamptz
) with (fillfactor = 50);

create index worker_lease on milepost.worker (lease_expires_at) where ended_at is null;
create index worker_ended on milepost.worker (ended_at) where ended_at is not null;
create index worker_uncleared on milepost.worker (ended_at) where ended_at is not null and cleared_at is null;

-- Queues that an operator has paused or resumed; a queue without a row is not paused.
create table milepost.queue (
    name text primary key,
    paused_at timestamptz
);

-- One row for each slot that a job of the group holds. A group without a limit has one slot: its jobs run one at a time.
create table milepost.group_slot (
    group_key text not null,
    slot bigint not null default 1,
    job_id uuid not null unique,
    primary key (group_key, slot)
);

-- The transition function of operators' actions on jobs, as data. A test compares it with the function in the library for
-- every pair.
create table milepost.transition (
    from_state milepost.job_state not null,
    verb milepost.verb not null,
    to_state milepost.job_state not null,
    primary key (from_state, verb)
);

insert into milepost.transition (from_state, verb, to_state) values
    ('blocked', 'release', 'pending'),
    ('pending', 'claim', 'running'),
    ('retry_wait', 'claim', 'running'),
    ('running', 'succeed', 'succeeded'),
    ('running', 'retry', 'retry_wait'),
    ('running', 'fail', 'failed'),
    ('running', 'yield', 'pending'),
    ('blocked', 'cancel', 'canceled'),
    ('pending', 'cancel', 'canceled'),
    ('running', 'cancel', 'canceled'),
    ('retry_wait', 'cancel', 'canceled'),
    ('failed', 'cancel', 'canceled'),
    ('aborted', 'cancel', 'canceled'),
    ('blocked', 'skip', 'skipped'),
    ('pending', 'skip', 'skipped'),
    ('blocked', 'mark', 'succeeded'),
    ('pending', 'mark', 'succeeded'),
    ('retry_wait', 'mark', 'succeeded'),
    ('failed', 'mark', 'succeeded'),
    ('blocked', 'abort', 'aborted'),
    ('pending', 'abort', 'aborted'),
    ('running', 'abort', 'aborted'),
    ('retry_wait', 'abort', 'aborted'),
    ('retry_wait', 'retry_now', 'pending'),
    ('failed', 'retry_now', 'pending'),
    ('aborted', 'resume', 'pending'),
    ('succeeded', 'rerun', 'pending'),
    ('canceled', 'rerun', 'pending'),
    ('skipped', 'rerun', 'pending'),
    ('blocked', 'snooze', 'blocked'),
    ('pending', 'snooze', 'pending'),
    ('retry_wait', 'snooze', 'retry_wait');

-- Attempts: the claim that began each one and the change that ended it, which have the same token.
create view milepost.attempt as
select c.job_id, c.attempt, c.token, c.worker_id, c.at as started_at, e.at as ended_at, e.verb as outcome,
       e.error_code, e.error_message
from milepost.history c
left join milepost.history e on e.job_id = c.job_id and e.token = c.token and e.from_state = 'running'
where c.verb = 'claim';
