-- Operations on subscriptions.
-- SQLSTATEs: MP020 the subscription does not exist; MP022 the aggregate is not parked; MP026 another event is its first one; MP023 the event is not a dead letter; MP024 the
-- log does not reach back that far (DETAIL: the first sequence in the log, empty if there is none); MP025 a publisher is running.

-- Raises MP020 unless the subscription exists.
create or replace function milepost.check_subscription(subscription text) returns void language plpgsql as $$
begin
    if not exists (select from milepost.subscription s where s.name = check_subscription.subscription) then
        raise exception using errcode = 'MP020', message = format('there is no subscription %s', subscription);
    end if;
end
$$;

-- Applies 'retry', 'skip' or 'edit' to the first event of a parked aggregate; with `event_id`, only if that is the first one.
drop function if exists milepost.change_parked(text, text, text, text, json);
create or replace function milepost.change_parked(
    subscription text, aggregate_type text, aggregate_id text, verb text, payload json default null, event_id uuid default null
) returns void language plpgsql as $$
#variable_conflict use_variable
declare
    first record;
begin
    perform milepost.check_subscription(subscription);
    perform from milepost.parked_aggregate a
    where a.subscription = subscription and a.aggregate_type = aggregate_type and a.aggregate_id = aggregate_id for update;
    select p.* into first from milepost.parked_event p
    where p.subscription = subscription and p.aggregate_type = aggregate_type and p.aggregate_id = aggregate_id
    order by p.pos limit 1;
    if not found then
        raise exception using errcode = 'MP022', message = format('%s/%s is not parked', aggregate_type, aggregate_id);
    end if;
    if first.event_id <> event_id then
        raise exception using errcode = 'MP026',
            message = format('event %s is not the first parked event of %s/%s', event_id, aggregate_type, aggregate_id);
    end if;
    if verb = 'skip' then
        insert into milepost.dead_event (subscription, event_id, slot, pos, deliveries, why, skipped, edited)
        select subscription, first.event_id, first.slot, first.pos, a.deliveries, a.why, true, first.edited
        from milepost.parked_aggregate a
        where a.subscription = subscription and a.aggregate_type = aggregate_type and a.aggregate_id = aggregate_id
        on conflict do nothing;
        delete from milepost.parked_event p
        where p.subscription = subscription and p.aggregate_type = aggregate_type and p.aggregate_id = aggregate_id and p.pos = first.pos;
    else
        -- The operator wants this event to be published, whatever the filter says about events that are published again.
        update milepost.parked_event p set edited = case when verb = 'edit' then payload else p.edited end, replayed = false
        where p.subscription = subscription and p.aggregate_type = aggregate_type and p.aggregate_id = aggregate_id and p.pos = first.pos;
    end if;
    if verb = 'skip' and not exists (
        select from milepost.parked_event p
        where p.subscription = subscription and p.aggregate_type = aggregate_type and p.aggregate_id = aggregate_id) then
        delete from milepost.parked_aggregate a
        where a.subscription = subscription and a.aggregate_type = aggregate_type and a.aggregate_id = aggregate_id;
    else
        update milepost.parked_aggregate a set deliveries = 0, next_delivery_at = clock_timestamp()
        where a.subscription = subscription and a.aggregate_type = aggregate_type and a.aggregate_id = aggregate_id;
    end if;
end
$$;

-- Applies 'retry' or 'drop' to a dead letter.
create or replace function milepost.change_dead(subscription text, event_id uuid, verb text) returns void language plpgsql as $$
#variable_conflict use_variable
declare
    dead record;
begin
    perform milepost.check_subscription(subscription);
    delete from milepost.dead_event d where d.subscription = subscription and d.event_id = event_id returning d.* into dead;
    if not found then
        raise exception using errcode = 'MP023', message = format('event %s is not a dead letter', event_id);
    end if;
    if verb = 'retry' then
        insert into milepost.parked_aggregate as a (subscription, aggregate_type, aggregate_id, slot, deliveries, next_delivery_at, why)
        select subscription, e.aggregate_type, e.aggregate_id, e.slot, 0, clock_timestamp(), 'a dead letter is retried'
        from milepost.event e where e.slot = dead.slot and e.pos = dead.pos
        on conflict on constraint parked_aggregate_pkey do update set deliveries = 0, next_delivery_at = clock_timestamp();
        insert into milepost.parked_event (subscription, aggregate_type, aggregate_id, pos, slot, event_id, edited)
        select subscription, e.aggregate_type, e.aggregate_id, e.pos, e.slot, e.event_id, dead.edited
        from milepost.event e where e.slot = dead.slot and e.pos = dead.pos
        on conflict do nothing;
    end if;
end
$$;

-- Returns whether an event is before a subscription's position. That includes an event below the floor that was not in
-- flight, even if `seen` does not contain it: it was imported from another store, or written on another server.
create or replace function milepost.has_passed(s milepost.subscription_place, xid xid8, pos bigint) returns boolean
language sql stable as $$
    select s.seen is null or pg_visible_in_snapshot(xid, s.seen)
           or pos <= s.floor and xid >= pg_snapshot_xmax(s.seen)
           or s.upto is not null and pg_visible_in_snapshot(xid, s.upto) and pos <= s.pos
$$;

-- Publishes events before a subscription's position again: those of an aggregate from a sequence on, or those emitted from a time on.
-- Returns their number.
create or replace function milepost.replay(
    subscription text, aggregate_type text, aggregate_id text, from_seq bigint, since timestamptz
) returns bigint language plpgsql as $$
#variable_conflict use_variable
declare
    first bigint;
    again bigint;
begin
    perform milepost.check_subscription(subscription);
    if aggregate_id is not null then
        select min(e.aggregate_seq) into first from milepost.event e
        where e.aggregate_type = aggregate_type and e.aggregate_id = aggregate_id;
        if first is null or first > from_seq then
            raise exception using errcode = 'MP024', message = 'the log does not contain the first of these events', detail = coalesce(first::text, '');
        end if;
    end if;
    with again as materialized (
        select e.slot, e.pos, e.event_id, e.aggregate_type, e.aggregate_id from milepost.event e
        join milepost.subscription_place s on s.subscription = subscription and s.slot = e.slot
        where aggregate_id is not null and e.aggregate_type = aggregate_type and e.aggregate_id = aggregate_id
          and e.aggregate_seq >= from_seq and milepost.has_passed(s, e.xid, e.pos)
        union all
        select e.slot, e.pos, e.event_id, e.aggregate_type, e.aggregate_id from milepost.event e
        join milepost.subscription_place s on s.subscription = subscription and s.slot = e.slot
        where aggregate_id is null and e.emitted_at >= since and milepost.has_passed(s, e.xid, e.pos)
    ),
    parked as (
        insert into milepost.parked_aggregate as a (subscription, aggregate_type, aggregate_id, slot, deliveries, next_delivery_at, why)
        select subscription, r.aggregate_type, r.aggregate_id, min(r.slot), 0, clock_timestamp(), 'is published again'
        from again r
        group by r.aggregate_type, r.aggregate_id
        order by r.aggregate_type, r.aggregate_id
        on conflict on constraint parked_aggregate_pkey do update set deliveries = 0, next_delivery_at = clock_timestamp()
    )
    insert into milepost.parked_event (subscription, aggregate_type, aggregate_id, pos, slot, event_id, replayed)
    select subscription, r.aggregate_type, r.aggregate_id, r.pos, r.slot, r.event_id, true from again r
    on conflict do nothing;
    get diagnostics again = row_count;
    return again;
end
$$;

-- Adopts the log for this server: transaction ids of another server have no meaning here. Events from the lowest position that a
-- subscription may not have passed are published again. Returns the number of subscriptions.
create or replace function milepost.reseed() returns bigint language plpgsql as $$
declare
    publisher text;
    subscriptions bigint;
begin
    select p.label into publisher from milepost.publisher p where p.lease_until > clock_timestamp() limit 1;
    if found then
        raise exception using errcode = 'MP025', message = publisher;
    end if;
    lock table milepost.event in share row exclusive mode;
    update milepost.subscription_slot s set token = s.token + 1, owner = null;
    insert into milepost.slot_position (subscription, slot, seen, floor)
    select s.subscription, s.slot, '1:1:',
           coalesce((select min(e.pos) - 1 from milepost.event e where e.slot = s.slot and not pg_visible_in_snapshot(e.xid, s.seen)),
                    s.floor)
    from milepost.subscription_place s
    where s.seen is not null;
    delete from milepost.slot_position p using milepost.subscription_place s
    where p.subscription = s.subscription and p.slot = s.slot and p.n < s.n;
    -- The first transaction id: seen by every snapshot.
    update milepost.event e set xid = '3' where e.xid <> '3';
    -- First, because a restored log gets its identity there.
    perform milepost.note_timeline();
    update milepost.subscription s set log_identity = milepost.log_identity();
    get diagnostics subscriptions = row_count;
    return subscriptions;
end
$$;

-- Deletes a portion of the log: events older than keep_ms that every subscription has passed, unless they are parked or dead letters.
-- Returns their number; null: all slots are done.
create or replace function milepost.prune_log(keep_ms bigint) returns bigint language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
declare
    -- Number of events for each slot.
    portion constant int := 200;
    before constant timestamptz := clock_timestamp() - keep_ms * interval '1 ms';
    pruned bigint;
    goes_on boolean;
begin
    perform from milepost.log_prune p order by p.slot for update;
    -- Positions of another log show nothing about new events; see milepost.reseed().
    if exists (select from milepost.subscription s where s.log_identity <> milepost.log_identity()) then
        return null;
    end if;
    with looked as materialized (
        select p.slot, e.pos, e.emitted_at < before as old,
               not exists (select from milepost.subscription_place s where s.slot = p.slot and not milepost.has_passed(s, e.xid, e.pos))
               -- OFFSET 0 prevents a plan that hashes the whole table.
               and not exists (select from milepost.parked_event k where k.event_id = e.event_id offset 0)
               and not exists (select from milepost.dead_event d where d.event_id = e.event_id offset 0) as passed
        from milepost.log_prune p
        cross join lateral (
            select e.pos, e.emitted_at, e.xid, e.event_id from milepost.event e
            where e.slot = p.slot and e.pos > p.pos order by e.pos limit portion
        ) e
    ),
    gone as (
        delete from milepost.event e using looked l where l.old and l.passed and e.slot = l.slot and e.pos = l.pos returning e.pos, e.event_id
    ),
    -- They cannot be read again, so it no longer matters what they have started.
    forgotten as (
        delete from milepost.event_work w using gone g where w.event_id = g.event_id
    ),
    -- A slot in which the portion ended at events that are too young, or at the end, starts from its beginning the next time.
    ends as (
        update milepost.log_prune p
        set pos = coalesce((select case when count(*) = portion and bool_and(l.old) then max(l.pos) else 0 end
                            from looked l where l.slot = p.slot), 0)
        returning p.pos
    )
    select (select count(*) from gone), (select bool_or(e.pos > 0) from ends e) into pruned, goes_on;
    return case when pruned > 0 or goes_on then pruned end;
end
$$;
