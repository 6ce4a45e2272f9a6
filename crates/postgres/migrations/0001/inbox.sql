-- Inbox: the events that consumers have received. It is in the consumer's database, wherever the events come from.

-- Settings of consumers that differ from the defaults. gap_wait_ms: how long events wait for a missing one before them;
-- parked_max: how many events of an aggregate wait at most; gap_policy: what happens after that; begins_anywhere: the first
-- event that is received of an aggregate need not have sequence number 1.
create table milepost.inbox_consumer (
    consumer text primary key,
    gap_wait_ms bigint not null default 600000 check (gap_wait_ms between 0 and 3155760000000),
    parked_max int not null default 1000 check (parked_max between 1 and 100000),
    gap_policy text not null default 'dead_letter' check (gap_policy in ('dead_letter', 'skip_gap')),
    begins_anywhere boolean not null default false
);

-- IDs of events that a consumer has processed, in any order.
create table milepost.processed_event (
    consumer text not null,
    event_id uuid not null,
    processed_at timestamptz not null default now(),
    primary key (consumer, event_id)
);
create index processed_event_due on milepost.processed_event (processed_at);

-- The last event of an aggregate that a consumer has received. parked: the number of events that wait in inbox_parked; dead:
-- the number of dead letters that could still follow; ready: the next event may be among these; gives_up_at: when waiting
-- for a missing event ends.
create table milepost.aggregate_checkpoint (
    consumer text not null,
    aggregate_type text not null,
    aggregate_id text not null,
    last_seq bigint not null check (last_seq >= 0),
    parked int not null default 0 check (parked >= 0),
    dead int not null default 0 check (dead >= 0),
    ready boolean not null default false,
    gives_up_at timestamptz,
    primary key (consumer, aggregate_type, aggregate_id)
) with (fillfactor = 70);
create index aggregate_checkpoint_ready on milepost.aggregate_checkpoint (consumer, aggregate_type, aggregate_id) where ready;
create index aggregate_checkpoint_gap on milepost.aggregate_checkpoint (gives_up_at) where gives_up_at is not null;

-- Complete events that arrived before a missing one.
create table milepost.inbox_parked (
    consumer text not null,
    aggregate_type text not null,
    aggregate_id text not null,
    aggregate_seq bigint not null,
    event_id uuid not null,
    event_type text not null,
    headers jsonb,
    payload json not null,
    emitted_at timestamptz not null,
    parked_at timestamptz not null default now(),
    primary key (consumer, aggregate_type, aggregate_id, aggregate_seq)
);

-- Dead letters, for operators. reason: 'gap', an event before which one is missing; 'never_came', the missing events
-- aggregate_seq to seq_to, which the consumer skipped; 'late', one of these that arrived later. why: a description.
create table milepost.inbox_dead (
    pos bigint generated always as identity primary key,
    consumer text not null,
    aggregate_type text not null,
    aggregate_id text not null,
    aggregate_seq bigint not null,
    seq_to bigint not null check (seq_to >= aggregate_seq),
    reason text not null check (reason in ('gap', 'never_came', 'late')),
    why text not null,
    event_id uuid,
    event_type text,
    headers jsonb,
    payload json,
    emitted_at timestamptz,
    dead_at timestamptz not null default now(),
    check ((event_id is null) = (reason = 'never_came'))
);
create unique index inbox_dead_event on milepost.inbox_dead (consumer, aggregate_type, aggregate_id, aggregate_seq) where event_id is not null;
create index inbox_dead_gap on milepost.inbox_dead (consumer, aggregate_type, aggregate_id, aggregate_seq) where event_id is null;
create index inbox_dead_due on milepost.inbox_dead (dead_at);

-- Numbers of duplicates: for each consumer as many rows as transactions that counted at the same time, since they do not
-- wait for each other.
create table milepost.inbox_tally (
    consumer text not null,
    shard bigint generated always as identity,
    duplicates bigint not null,
    primary key (consumer, shard)
) with (fillfactor = 50);
