-- Subscriptions: their positions in the log, their publishers, and parked events.

-- Finds the events of transactions that were in flight in a snapshot, by transaction ID.
create index event_xid on milepost.event (xid, slot, pos);

-- log_identity: the log whose transaction IDs the positions refer to; see milepost.log_identity().
create table milepost.subscription (
    name text primary key,
    made_at timestamptz not null default now(),
    log_identity bigint not null,
    paused_at timestamptz,
    paused_why text,
    check ((paused_at is null) = (paused_why is null))
);

-- Publishers, one for each process incarnation. down_since, down_why: the sink does not accept events.
create table milepost.publisher (
    id uuid primary key,
    subscription text not null references milepost.subscription on delete cascade,
    label text not null,
    started_at timestamptz not null default now(),
    lease_until timestamptz not null,
    down_since timestamptz,
    down_why text,
    -- Whether it leaves its slots to other publishers because its sink does not accept events.
    stands_aside boolean not null default false
);
create index on milepost.publisher (subscription);

-- Owners of the slots of a subscription. token: rises whenever the slot is taken over. owner: holds the slot as long as it
-- exists in milepost.publisher; a publisher whose lease has expired is deleted there.
create table milepost.subscription_slot (
    subscription text not null references milepost.subscription on delete cascade,
    slot smallint not null check (slot between 0 and 63),
    owner uuid,
    token bigint not null default 0,
    held_since timestamptz,
    primary key (subscription, slot)
) with (fillfactor = 50);

-- Positions in the slots. Everything that `seen` sees has been answered, and of what only `upto` sees, everything up to
-- `pos`. floor: of the events that `seen` does not see, only those of transactions that were in flight in it are at or below
-- this position. next_floor: the same for `upto`. upto null: no window is open. seen null: the subscription has not begun
-- yet.
-- The last row of a slot is the current one. The slot's token is locked while a row is added, which also deletes the row
-- before. Rows are never updated, except once to set `seen`: while an old snapshot is held, all versions of a row that
-- changes every second remain, and each update would walk along them. The last of many rows, in contrast, is the first entry
-- at the end of the index. There is no foreign key, since checking it would cost more than the row.
create table milepost.slot_position (
    subscription text not null,
    slot smallint not null,
    n bigint generated always as identity,
    seen pg_snapshot,
    floor bigint not null,
    upto pg_snapshot,
    next_floor bigint,
    pos bigint not null default 0,
    advanced_at timestamptz,
    primary key (subscription, slot, n)
);

-- The slots with their current positions.
create view milepost.subscription_place as
select s.subscription, s.slot, s.owner, s.token, s.held_since, p.n, p.seen, p.floor, p.upto, p.next_floor, p.pos, p.advanced_at
from milepost.subscription_slot s
cross join lateral (
    select * from milepost.slot_position p where p.subscription = s.subscription and p.slot = s.slot order by p.n desc limit 1
) p;

-- Aggregates with a failed event. deliveries: the number of attempts of the first parked event.
-- next_delivery_at null: waits for an operator.
create table milepost.parked_aggregate (
    subscription text not null references milepost.subscription on delete cascade,
    aggregate_type text not null,
    aggregate_id text not null,
    slot smallint not null,
    parked_at timestamptz not null default now(),
    deliveries integer not null,
    next_delivery_at timestamptz,
    why text not null,
    primary key (subscription, aggregate_type, aggregate_id)
);
create index on milepost.parked_aggregate (subscription, next_delivery_at) where next_delivery_at is not null;
create index on milepost.parked_aggregate (parked_at, subscription, aggregate_type, aggregate_id);

-- Events of parked aggregates, in the order of pos: the failed one and those behind it. edited: the payload to publish
-- instead of the original one.
create table milepost.parked_event (
    subscription text not null,
    aggregate_type text not null,
    aggregate_id text not null,
    pos bigint not null,
    slot smallint not null,
    event_id uuid not null,
    edited json,
    primary key (subscription, aggregate_type, aggregate_id, pos),
    foreign key (subscription, aggregate_type, aggregate_id) references milepost.parked_aggregate on delete cascade
);
create index on milepost.parked_event (event_id);

-- Dead-lettered events: kept until an operator decides about them. skipped: by the policy of the subscription or by an
-- operator, not because all attempts failed.
create table milepost.dead_event (
    subscription text not null references milepost.subscription on delete cascade,
    event_id uuid not null,
    slot smallint not null,
    pos bigint not null,
    dead_at timestamptz not null default now(),
    deliveries integer not null,
    why text not null,
    skipped boolean not null,
    edited json,
    primary key (subscription, event_id)
);
create index on milepost.dead_event (event_id);
create index on milepost.dead_event (dead_at, event_id, subscription);

-- The position in each slot at which the last search for deletable events ended; the next one continues there.
create table milepost.log_prune (
    slot smallint primary key check (slot between 0 and 63),
    pos bigint not null default 0
) with (fillfactor = 50);
insert into milepost.log_prune (slot) select slot from generate_series(0, 63) slot;
