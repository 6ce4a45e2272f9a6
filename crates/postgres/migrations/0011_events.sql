-- Events: facts about aggregates, written in the transactions of the changes that they tell of.

-- The head of an aggregate's events. slot: in which of the 64 slots all of them are; chosen when the aggregate is first
-- seen and kept for ever, so that no change of a hash function puts one aggregate into two. Every event of it begins
-- with a lock of this row: that is why they commit in the order of their numbers.
create table milepost.aggregate (
    aggregate_type text not null,
    aggregate_id text not null,
    last_seq bigint not null,
    slot smallint not null check (slot between 0 and 63),
    primary key (aggregate_type, aggregate_id)
) with (fillfactor = 70);

-- The log: grows at its end, and no row of it is ever updated. payload: published as it was written, byte by byte; jsonb
-- would write numbers and the order of keys anew. headers: null when there are none. xid: the transaction that wrote it,
-- by which readers know what was in flight when they looked. emitted_at: when that began.
create table milepost.event (
    slot smallint not null,
    pos bigint generated always as identity,
    event_id uuid not null,
    aggregate_type text not null,
    aggregate_id text not null,
    aggregate_seq bigint not null check (aggregate_seq > 0),
    xid xid8 not null default pg_current_xact_id(),
    emitted_at timestamptz not null default now(),
    event_type text not null,
    headers jsonb,
    payload json not null,
    primary key (slot, pos),
    unique (event_id),
    unique (aggregate_type, aggregate_id, aggregate_seq)
);
