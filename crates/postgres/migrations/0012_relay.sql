-- Subscriptions: where each is in the log, who publishes for it, and what is parked.

-- Those of transactions that were in flight when somebody looked are looked up by their ids.
create index event_xid on milepost.event (xid, slot, pos);

-- system_identifier: the server whose transactions its positions are told by.
create table milepost.subscription (
    name text primary key,
    made_at timestamptz not null default now(),
    system_identifier bigint not null,
    paused_at timestamptz,
    paused_why text,
    check ((paused_at is null) = (paused_why is null))
);

-- What publishes, in one process incarnation. down_since, down_why: its sink takes nothing.
create table milepost.publisher (
    id uuid primary key,
    subscription text not null references milepost.subscription on delete cascade,
    label text not null,
    started_at timestamptz not null default now(),
    lease_until timestamptz not null,
    down_since timestamptz,
    down_why text,
    -- Whether it leaves its slots to others, since its sink takes nothing.
    stands_aside boolean not null default false
);
create index on milepost.publisher (subscription);

-- Who has which slot of a subscription. token: rises whenever the slot changes hands. owner: holds it for as long as it is a publisher;
-- one that is silent is none any more.
create table milepost.subscription_slot (
    subscription text not null references milepost.subscription on delete cascade,
    slot smallint not null check (slot between 0 and 63),
    owner uuid,
    token bigint not null default 0,
    held_since timestamptz,
    primary key (subscription, slot)
) with (fillfactor = 50);

-- How far it is: all that `seen` sees has its answer, and of what `upto` sees besides, all up to `pos`. floor: of what `seen` does not see, only
-- transactions that were in flight in it have written at or below this position. next_floor: the same of `upto`. upto null: no window is
-- open. seen null: nobody has looked yet.
-- The last row of a slot counts, whose token is locked while it is added; the one before it goes with that. No row is ever changed,
-- but for `seen`, once: under a snapshot that somebody holds, all versions of a row that changes every second stay, and each change would
-- walk along them. The last of many rows is the first one at the end of the index. No foreign key: to look it up would cost more than the
-- row.
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

-- Both together.
create view milepost.subscription_place as
select s.subscription, s.slot, s.owner, s.token, s.held_since, p.n, p.seen, p.floor, p.upto, p.next_floor, p.pos, p.advanced_at
from milepost.subscription_slot s
cross join lateral (
    select * from milepost.slot_position p where p.subscription = s.subscription and p.slot = s.slot order by p.n desc limit 1
) p;

-- Aggregates of which an event failed. deliveries: how many attempts the first of its parked events has had.
-- next_delivery_at null: it waits for a person.
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

-- Their events, in the order of pos: the one that failed and those behind it. edited: what is published instead of what was emitted.
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

-- Events that were given up: kept until a person says what becomes of them. skipped: by the subscription's policy or by a person,
-- not because nothing else could be done.
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

-- Where in each slot the last look for events that can be forgotten ended; from there the next one goes on.
create table milepost.log_prune (
    slot smallint primary key check (slot between 0 and 63),
    pos bigint not null default 0
) with (fillfactor = 50);
insert into milepost.log_prune (slot) select slot from generate_series(0, 63) slot;
