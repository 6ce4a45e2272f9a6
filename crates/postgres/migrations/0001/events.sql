-- Events: facts about aggregates, written in the transactions of the changes that they describe.

-- The heads of aggregates. slot: the one of 64 slots that contains all events of the aggregate; assigned when the aggregate
-- is first seen and never changed, so that a different hash function cannot put one aggregate into two slots. Every emit
-- first locks the row of its aggregate, so events commit in the order of their numbers.
create table milepost.aggregate (
    aggregate_type text not null,
    aggregate_id text not null,
    last_seq bigint not null,
    slot smallint not null check (slot between 0 and 63),
    primary key (aggregate_type, aggregate_id)
) with (fillfactor = 70);

-- The event log. Rows are appended and never updated, except by milepost.reseed(). payload: published byte for byte as it
-- was written; jsonb would change numbers and the order of keys. headers: null if there are none. xid: the transaction that
-- wrote the event, by which readers recognize transactions in flight. emitted_at: the start of that transaction.
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
