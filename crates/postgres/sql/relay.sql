-- The relay: owners of the slots of a subscription, and their positions. For milepost's own publishers on dedicated
-- connections: the results are correct only if the function is the first statement of its transaction.
-- SQLSTATEs: MP020 the subscription does not exist; MP021 the position was stored in another database.

-- Returns the last position drawn from the sequence of the log. Transactions that have drawn a position already have an ID:
-- if a reader calls this function and then begins and ends another transaction, all of them are visible or listed as in
-- flight in later snapshots.
-- Does not select last_value, which reads the sequence's row without a lock. It would sometimes return the value that
-- nextval logs in advance, 32 higher, before it writes the one that it returns.
create or replace function milepost.last_pos() returns bigint language sql volatile as $$
    select coalesce(pg_sequence_last_value('milepost.event_pos_seq'::regclass), 0)
$$;

-- Creates a subscription; returns false if it exists. from_now: it begins with what is committed from now on; requires a
-- call of begin_now in a later transaction.
create or replace function milepost.subscribe(name text, from_now boolean) returns boolean language plpgsql as $$
declare
    drawn bigint := case when from_now then milepost.last_pos() else 0 end;
begin
    insert into milepost.subscription (name, log_identity)
    values (subscribe.name, milepost.log_identity())
    on conflict do nothing;
    if not found then
        return false;
    end if;
    -- Tokens of a subscription that is created again exceed those of the deleted one, whose publisher may still be frozen.
    insert into milepost.subscription_slot (subscription, slot, token)
    select subscribe.name, slot, (extract(epoch from clock_timestamp()) * 1000000)::bigint from generate_series(0, 63) slot;
    insert into milepost.slot_position (subscription, slot, seen, floor)
    select subscribe.name, slot, case when not from_now then '1:1:'::pg_snapshot end, drawn
    from generate_series(0, 63) slot;
    return true;
end
$$;

-- Sets the start position of a subscription that was created with from_now, once; has no effect on one that has begun. The
-- creator calls it immediately after subscribe; if the creator died before that, the first publisher does.
create or replace function milepost.begin_now(subscription text) returns void language plpgsql as $$
#variable_conflict use_variable
begin
    -- Excludes a publisher in hold_slots.
    perform from milepost.subscription s where s.name = subscription for no key update;
    update milepost.slot_position p set seen = pg_current_snapshot() where p.subscription = subscription and p.seen is null;
end
$$;

-- Renews the lease of a publisher, takes free slots up to its fair share, and releases surplus ones. Returns all slots that
-- it holds; taken_over: the slot was taken over from a publisher whose lease had expired. Returns none if the subscription
-- is paused. drawn: the floor of windows that are opened after this transaction has committed. stands_aside: its sink does
-- not accept events, so the other publishers get its share, unless all stand aside.
create or replace function milepost.hold_slots(
    subscription text, publisher uuid, label text, lease_ms bigint, stands_aside boolean default false
) returns table (
    slot smallint, token bigint, taken_over boolean, n bigint, seen text, floor bigint, upto text, next_floor bigint, pos bigint,
    drawn bigint
) language plpgsql as $$
#variable_conflict use_variable
declare
    last_drawn bigint := milepost.last_pos();
    until timestamptz := clock_timestamp() + lease_ms * interval '1 ms';
    publishers bigint;
    willing bigint;
    share bigint;
    surplus bigint;
    over smallint[];
    known record;
begin
    -- One publisher at a time, so that all count the same publishers.
    select s.paused_at, s.log_identity into known from milepost.subscription s where s.name = subscription for no key update;
    if not found then
        raise exception using errcode = 'MP020', message = format('there is no subscription %s', subscription);
    end if;
    if known.log_identity <> milepost.log_identity() then
        raise exception using errcode = 'MP021', message = format('the position of subscription %s was stored for another log: on another server, or before a dump was restored', subscription);
    end if;
    insert into milepost.publisher as p (id, subscription, label, lease_until, stands_aside)
    values (publisher, subscription, label, until, stands_aside)
    on conflict (id) do update set lease_until = until, stands_aside = excluded.stands_aside;
    delete from milepost.publisher p where p.subscription = subscription and p.id <> publisher and p.lease_until < clock_timestamp();
    select count(*), count(*) filter (where not p.stands_aside) into publishers, willing
    from milepost.publisher p where p.subscription = subscription;
    share := case
        when known.paused_at is not null then 0
        when willing = 0 then ceil(64.0 / publishers)
        when stands_aside then 0
        else ceil(64.0 / willing)
    end;

    select count(*) - share into surplus from milepost.subscription_slot s where s.subscription = subscription and s.owner = publisher;
    if surplus > 0 then
        update milepost.subscription_slot s set owner = null, held_since = null
        where s.subscription = subscription
          and s.slot in (select g.slot from milepost.subscription_slot g
                         where g.subscription = subscription and g.owner = publisher order by g.slot desc limit surplus);
    elsif surplus < 0 then
        with free as (
            select f.slot, f.owner from milepost.subscription_slot f
            where f.subscription = subscription
              and (f.owner is null or not exists (select from milepost.publisher p where p.id = f.owner))
            order by f.slot
            limit -surplus
            for no key update
        ),
        taken as (
            update milepost.subscription_slot s
            set owner = publisher, token = s.token + 1, held_since = clock_timestamp()
            from free
            where s.subscription = subscription and s.slot = free.slot
            returning s.slot, free.owner as held_by
        )
        select array_agg(t.slot) into over from taken t where t.held_by is not null;
        perform milepost.begin_now(subscription);
    end if;
    return query
    select s.slot, s.token, s.slot = any (coalesce(over, '{}')), s.n, s.seen::text, s.floor, s.upto::text, s.next_floor, s.pos,
           last_drawn
    from milepost.subscription_place s
    where s.subscription = subscription and s.owner = publisher
    order by s.slot;
end
$$;

-- Moves the positions of slots, parks their failed events and dead-letters others. Slots with another token are left alone,
-- and all slots if the epoch in which the positions were read has ended. Returns the floor for windows opened after the
-- commit, and the moved slots with their new ns.
-- ns: those of the current positions.
-- failed: [{slot, pos, id, type, aggregate, deliveries, wait_ms, why}], wait_ms null: waits for an operator. behind: the
-- same without the last three. given_up: [{slot, pos, id, deliveries, why, skipped}].
create or replace function milepost.advance_slots(
    subscription text, slots smallint[], tokens bigint[], ns bigint[], seens text[], floors bigint[], uptos text[], next_floors bigint[],
    poss bigint[], failed jsonb, behind jsonb, given_up jsonb, epoch text
) returns table (floor bigint, moved smallint[], moved_ns bigint[]) language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
#variable_conflict use_variable
declare
    drawn bigint := milepost.last_pos();
    held smallint[];
    held_ns bigint[];
begin
    if coalesce(failed, behind, given_up) is null then
        -- If a crash of the server undoes this change, the same events are published again from the earlier position.
        perform set_config('synchronous_commit', 'off', true);
    end if;
    -- A publisher that takes a slot over waits for this lock, or has already raised the token.
    with locked as (
        select s.slot from unnest(slots, tokens) i(slot, token)
        join milepost.subscription_slot s on s.subscription = subscription and s.slot = i.slot and s.token = i.token
        where exists (select from milepost.running_epoch e where e.id = epoch)
        order by s.slot
        for no key update of s
    )
    select coalesce(array_agg(l.slot), '{}') into held from locked l;
    delete from milepost.slot_position p using unnest(slots, ns) i(slot, n)
    where i.slot = any (held) and p.subscription = subscription and p.slot = i.slot and p.n = i.n;
    with moved as (
        insert into milepost.slot_position (subscription, slot, seen, floor, upto, next_floor, pos, advanced_at)
        select subscription, i.slot, i.seen::pg_snapshot, i.floor, i.upto::pg_snapshot, i.next_floor, i.pos, clock_timestamp()
        from unnest(slots, seens, floors, uptos, next_floors, poss) i(slot, seen, floor, upto, next_floor, pos)
        where i.slot = any (held)
        returning slot_position.slot, slot_position.n
    )
    select coalesce(array_agg(m.slot), '{}'), coalesce(array_agg(m.n), '{}') into held, held_ns from moved m;
    if coalesce(failed, behind, given_up) is not null then
        perform milepost.park(subscription, held, failed, behind);
        perform milepost.give_up(subscription, held, given_up);
    end if;
    return query select drawn, held, held_ns;
end
$$;

-- Parks events of held slots: the failed ones, and those behind them.
create or replace function milepost.park(subscription text, held smallint[], failed jsonb, behind jsonb) returns void
language plpgsql as $$
#variable_conflict use_variable
begin
    -- An aggregate that was drained in the meantime is parked again, and due immediately. The row is locked in any case:
    -- either the transaction that drains the aggregate sees the added events, or this one sees that the aggregate was
    -- deleted.
    insert into milepost.parked_aggregate as a (subscription, aggregate_type, aggregate_id, slot, deliveries, next_delivery_at, why)
    select distinct on (i.type, i.aggregate)
           subscription, i.type, i.aggregate, i.slot, coalesce(i.deliveries, 0),
           case when i.deliveries is null then clock_timestamp() else clock_timestamp() + i.wait_ms * interval '1 ms' end,
           coalesce(i.why, 'waits behind an event that failed')
    from (select f.*, 0 as ord from jsonb_to_recordset(coalesce(failed, '[]'))
              f(slot smallint, pos bigint, id uuid, type text, aggregate text, deliveries integer, wait_ms bigint, why text)
          union all
          select b.*, null, null, null, 1 from jsonb_to_recordset(coalesce(behind, '[]'))
              b(slot smallint, pos bigint, id uuid, type text, aggregate text)) i
    where i.slot = any (held)
    order by i.type, i.aggregate, i.ord
    on conflict on constraint parked_aggregate_pkey do update set slot = a.slot;

    insert into milepost.parked_event (subscription, aggregate_type, aggregate_id, pos, slot, event_id)
    select subscription, i.type, i.aggregate, i.pos, i.slot, i.id
    from jsonb_to_recordset(coalesce(failed, '[]') || coalesce(behind, '[]'))
        i(slot smallint, pos bigint, id uuid, type text, aggregate text)
    where i.slot = any (held)
    on conflict do nothing;
end
$$;

-- Stores dead letters of held slots.
create or replace function milepost.give_up(subscription text, held smallint[], given_up jsonb) returns void language sql as $$
    insert into milepost.dead_event (subscription, event_id, slot, pos, deliveries, why, skipped, edited)
    select subscription, i.id, i.slot, i.pos, i.deliveries, i.why, i.skipped, i.edited
    from jsonb_to_recordset(coalesce(given_up, '[]'))
        i(slot smallint, pos bigint, id uuid, deliveries integer, why text, skipped boolean, edited json)
    where i.slot = any (held)
    on conflict (subscription, event_id) do update set deliveries = excluded.deliveries, why = excluded.why, dead_at = now()
$$;

-- Records the results of a parked aggregate's deliveries, if this publisher still owns the slot under this token. (After a failover that lost a
-- takeover, the same token can have been issued to two publishers.) delivered: acknowledged by the sink. given_up: [{id, deliveries, why, skipped}].
-- deliveries, wait_ms, why: of the first remaining event, if it failed. due_at: since when the aggregate was due when its events were read; if it is due
-- at another time, an operator has changed it: failures then do not count, and an event with a new payload stays. Returns whether no event remains.
drop function if exists milepost.settle_parked(text, uuid, smallint, bigint, text, text, uuid[], jsonb, integer, bigint, text);
create or replace function milepost.settle_parked(
    subscription text, publisher uuid, slot smallint, token bigint, aggregate_type text, aggregate_id text,
    delivered uuid[], given_up jsonb, deliveries integer, wait_ms bigint, why text, due_at timestamptz
) returns boolean language plpgsql as $$
#variable_conflict use_variable
declare
    due_now timestamptz;
    is_changed boolean;
begin
    perform from milepost.subscription_slot s
    where s.subscription = subscription and s.slot = slot and s.token = token and s.owner = publisher for share;
    if not found then
        return false;
    end if;
    select a.next_delivery_at into due_now from milepost.parked_aggregate a
    where a.subscription = subscription and a.aggregate_type = aggregate_type and a.aggregate_id = aggregate_id for update;
    if not found then
        return true;
    end if;
    is_changed := due_now is distinct from due_at;
    if is_changed then
        given_up := '[]';
    end if;
    perform milepost.give_up(subscription, array[slot], jsonb_agg(to_jsonb(g) || jsonb_build_object('slot', p.slot, 'pos', p.pos, 'edited', p.edited)))
    from jsonb_to_recordset(given_up) g(id uuid, deliveries integer, why text, skipped boolean)
    join milepost.parked_event p on p.event_id = g.id and p.subscription = subscription
    having count(*) > 0;
    delete from milepost.parked_event p
    where p.subscription = subscription and p.aggregate_type = aggregate_type and p.aggregate_id = aggregate_id
      and (p.event_id = any (delivered) and not (is_changed and p.edited is not null)
           or p.event_id in (select g.id from jsonb_to_recordset(given_up) g(id uuid)));
    if not exists (select from milepost.parked_event p
                   where p.subscription = subscription and p.aggregate_type = aggregate_type and p.aggregate_id = aggregate_id) then
        delete from milepost.parked_aggregate a
        where a.subscription = subscription and a.aggregate_type = aggregate_type and a.aggregate_id = aggregate_id;
        return true;
    end if;
    if is_changed then
        return false;
    end if;
    update milepost.parked_aggregate a
    set deliveries = coalesce(settle_parked.deliveries, 0),
        next_delivery_at = case when settle_parked.why is null then clock_timestamp() else clock_timestamp() + wait_ms * interval '1 ms' end,
        why = coalesce(settle_parked.why, a.why)
    where a.subscription = subscription and a.aggregate_type = aggregate_type and a.aggregate_id = aggregate_id;
    return false;
end
$$;
