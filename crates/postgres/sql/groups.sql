-- Groups: their slots, limits and rates. Not public: the functions of api.sql and the library call these.
--
-- The number of holders cannot exceed the limit. Slots are numbered, and a transaction that assigns slots uses the lowest
-- free numbers, at most as many as the limit minus the number of holders. Two transactions cannot take the same number,
-- since it is part of a key; and if a lowered limit of n has a surplus of u holders, no number above n - u is taken. A limit
-- is lowered under a lock that excludes transactions that assign slots by the old limit (put_group_limit).
--
-- Advisory locks: (19793, slot) a transaction is about to take the slot; (19794, class) shared while slots of its groups are
-- assigned, exclusive while a limit is lowered; (19795, 0) one transaction that changes buckets (pace, put_group_limit);
-- (19796, 0) one change of limits.

-- Returns the class by which a group can be limited; a group without a class is its own class.
create or replace function milepost.class_of(group_name text) returns text language sql immutable as $$
    select case when strpos(group_name, ':') > 0 then split_part(group_name, ':', 1) || ':*' else group_name end
$$;

-- Returns the limit of a group: its own, otherwise that of its class.
create or replace function milepost.limit_of(group_name text) returns setof milepost.group_limit
language sql stable as $$
    select * from milepost.group_limit g where g.name = group_name
    union all
    select * from milepost.group_limit g
    where g.name = milepost.class_of(group_name)
      and not exists (select from milepost.group_limit o where o.name = group_name)
$$;

-- Returns whether no other transaction is about to take this slot. Uses one of few locks, which slots share: an enqueue into
-- any number of groups must not exhaust the server's lock table.
create or replace function milepost.try_slot(group_name text, slot bigint) returns boolean language sql as $$
    select pg_try_advisory_xact_lock(19793, hashtext(group_name || '/' || slot) & 4095)
$$;

-- Fails a transaction with an old snapshot that uses what was deleted since, and would take it for what exists now.
create or replace function milepost.refuse_old_snapshot(what text) returns void language plpgsql
set search_path = pg_catalog, pg_temp as $$
begin
    raise exception using errcode = 'serialization_failure',
        message = format('%s was deleted since the snapshot of this transaction', what),
        hint = 'repeat the transaction';
end
$$;

-- Assigns free slots of groups to the jobs that wait for them, by priority, then due time. starts, parallel to groups: the
-- maximum number for each, if groups have rates: their tokens are then reserved for these jobs. hurried: for a caller that may keep its transaction open; it never waits for another transaction
-- that works on the same group, and maintenance assigns the slots that it skipped. Returns the number of jobs released.
create or replace function milepost.fill_slots(groups text[], starts int[], hurried boolean)
returns table (filled text, released int) language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
declare
    classes text[] := array(
        select distinct milepost.class_of(g.name) from unnest(groups) g(name)
        where exists (select from milepost.limit_of(g.name) l where l.slots is distinct from 1)
        order by 1);
begin
    if hurried then
        classes := array(select c from unnest(classes) c where pg_try_advisory_xact_lock_shared(19794, hashtext(c)));
    else
        perform pg_advisory_xact_lock_shared(19794, hashtext(c)) from unnest(classes) c;
    end if;
    return query
    with wanted as materialized (
        select g.name, g.most, case when l.name is null or milepost.class_of(g.name) <> all (classes) then 1 else l.slots end as slots
        from (select u.name, max(u.most) as most from unnest(groups, starts) u(name, most)
              where u.name is not null group by u.name order by u.name) g
        left join lateral milepost.limit_of(g.name) l on true
    ),
    room as materialized (
        select w.name, w.slots, case
            when w.slots is null then w.most
            else least(w.most, greatest(0, w.slots - (select count(*) from milepost.group_slot h where h.group_key = w.name)))
            end as free
        from wanted w
    ),
    -- OFFSET 0: each of these subqueries runs once, however often its result is used below.
    chosen as materialized (
        select r.name, p.id, p.slot
        from room r
        cross join lateral (
            select array(
                select l.id from milepost.live l
                where l.group_key = r.name and l.due_at is not null and l.timed is null
                order by l.priority, l.due_at, l.id
                limit coalesce(r.free, 0)
                for update skip locked
            ) as ids offset 0
        ) waiting
        cross join lateral (
            select case
                when r.slots is null then
                    array(select nextval('milepost.group_slot_beyond') from generate_series(1, cardinality(waiting.ids)))
                else array(
                    select f.slot
                    from (
                        select n.slot from generate_series(1::bigint, r.slots) n(slot)
                        where not exists (select from milepost.group_slot h where h.group_key = r.name and h.slot = n.slot)
                        limit cardinality(waiting.ids)
                    ) f
                    -- Only the holder of a group's only slot can release it, so no other transaction competes for it.
                    where (r.slots = 1 and not hurried) or milepost.try_slot(r.name, f.slot)
                )
                end as numbers offset 0
        ) free
        cross join lateral unnest(waiting.ids, free.numbers) p(id, slot)
        where p.slot is not null
    ),
    taken as (
        insert into milepost.group_slot (group_key, slot, job_id)
        select name, slot, id from chosen
        on conflict do nothing
        returning job_id
    ),
    freed as (
        update milepost.live l
        set state = 'pending', ready_at = greatest(now(), l.due_at), due_at = null,
            start_reserved = case when starts is not null then true end
        from taken t
        where l.id = t.job_id
        returning l.id, l.token, l.attempt, l.ready_at, l.group_key
    ),
    logged as (
        insert into milepost.history (job_id, token, attempt, verb, from_state, to_state, ready_at)
        select id, token, attempt, 'release', 'blocked', 'pending', ready_at from freed
    )
    select f.group_key, count(*)::int from freed f group by f.group_key;
end
$$;

-- Returns whether each statement of this transaction sees earlier commits of others. In repeatable read and serializable,
-- the holders and limits of groups can be older than slots that others have assigned since.
create or replace function milepost.sees_commits() returns boolean language sql stable as $$
    select current_setting('transaction_isolation') in ('read committed', 'read uncommitted')
$$;

-- Assigns free slots of groups to jobs that wait for them; groups that have a rate are noted for the pacer. See fill_slots.
-- A transaction with an old snapshot assigns none: the maintenance of workers does so within about a second.
create or replace function milepost.hand_over(groups text[], hurried boolean) returns bigint language plpgsql
set search_path = pg_catalog, pg_temp as $$
declare
    rated text[] := array(
        select distinct g.name from unnest(groups) g(name)
        where exists (select from milepost.limit_of(g.name) l where l.per_second is not null));
    handed bigint;
begin
    insert into milepost.group_note (group_key, starts) select name, 0 from unnest(rated) name;
    if not milepost.sees_commits() then
        return 0;
    end if;
    select coalesce(sum(f.released), 0) into handed
    from milepost.fill_slots(array(select g from unnest(groups) g where g <> all (rated)), null, hurried) f;
    if handed > 0 or cardinality(rated) > 0 then
        perform milepost.wake();
    end if;
    return handed;
end
$$;

-- Releases the slots of jobs that no longer need them, and assigns them to waiting jobs.
create or replace function milepost.free_groups(jobs uuid[]) returns bigint language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
declare
    groups text[];
begin
    with freed as (
        delete from milepost.group_slot where job_id = any(jobs) returning group_key
    )
    select array_agg(group_key) into groups from freed;
    return case when groups is null then 0 else milepost.hand_over(groups, false) end;
end
$$;

-- Takes a slot for a job that an operator releases, if one is free. A rate is debited, but does not prevent the release.
create or replace function milepost.take_slot(group_name text, job uuid) returns boolean language plpgsql as $$
declare
    own milepost.group_limit;
    number bigint;
begin
    if not milepost.sees_commits() then
        raise exception using errcode = 'MP003', message = format('group %s: a job can only be released in a read committed transaction', group_name),
            hint = 'The snapshot of this transaction does not show which slots of the group are in use now. Use read committed.';
    end if;
    perform pg_advisory_xact_lock_shared(19794, hashtext(milepost.class_of(group_name)));
    select * into own from milepost.limit_of(group_name);
    if own.name is not null and own.slots is null then
        number := nextval('milepost.group_slot_beyond');
    else
        select n.slot into number
        from generate_series(1::bigint, coalesce(own.slots, 1)) n(slot)
        where not exists (select from milepost.group_slot h where h.group_key = group_name and h.slot = n.slot)
          and (select count(*) from milepost.group_slot h where h.group_key = group_name) < coalesce(own.slots, 1)
        limit 1;
        if number is null or not milepost.try_slot(group_name, number) then
            return false;
        end if;
    end if;
    insert into milepost.group_slot (group_key, slot, job_id) values (group_name, number, job) on conflict do nothing;
    if found and own.per_second is not null then
        insert into milepost.group_note (group_key, starts) values (group_name, 1);
    end if;
    return exists (select from milepost.group_slot h where h.group_key = group_name and h.job_id = job);
end
$$;

-- Releases the jobs that are due and that the rates of groups allow. Jobs whose start time has come wait for a slot as if
-- they were enqueued now. Checks the groups that were noted and those whose tokens have been refilled, each by an index
-- probe. Only one transaction does this at a time, and it waits for no other. Returns the time in ms after which to call it
-- again; null: when a change is noted.
create or replace function milepost.pace() returns bigint language plpgsql
set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
declare
    notes int;
    names text[];
    allowed int[];
    handed int[];
    begun text[];
    claimed text[];
    claimed_at timestamptz[];
begin
    if not pg_try_advisory_xact_lock(19795, 0) then
        return 50;
    end if;
    with due as materialized (
        select id from milepost.live where timed and due_at <= now() order by due_at limit 1000 for update skip locked
    ),
    waiting as (
        update milepost.live l set timed = null from due where l.id = due.id returning l.group_key
    )
    select array_agg(group_key) into begun from waiting;
    if begun is not null then
        perform milepost.hand_over(begun, true);
    end if;
    with noted as (
        delete from milepost.group_note
        where ctid = any (array(select n.ctid from milepost.group_note n limit 10000))
        returning group_key, starts, started_at
    ),
    kept as (
        insert into milepost.group_bucket as b (group_key, full_at, look_at)
        select s.group_key, now() + milepost.cost(s.starts, l.per_second), now()
        from (select n.group_key, sum(n.starts) as starts from noted n group by n.group_key) s
        cross join lateral milepost.limit_of(s.group_key) l
        where l.per_second is not null
        on conflict (group_key) do update
        set full_at = case when excluded.full_at > now() then greatest(b.full_at, now()) + (excluded.full_at - now()) else b.full_at end,
            look_at = now()
    )
    select count(*), array_agg(group_key) filter (where started_at is not null), array_agg(started_at) filter (where started_at is not null)
    into notes, claimed, claimed_at
    from noted;

    names := array(select b.group_key from milepost.group_bucket b where b.look_at <= now() order by b.look_at limit 500);
    if cardinality(names) > 0 then
        perform milepost.count_starts(names, claimed, claimed_at);
        allowed := array(
            select case when t.tokens >= t.portion then t.tokens::int else 0 end
            from (
                select n.ord, l.portion, floor(milepost.tokens(milepost.full_without_reserved(b, l.per_second), l.per_second, l.burst)) as tokens
                from unnest(names) with ordinality n(name, ord)
                join milepost.group_bucket b on b.group_key = n.name
                left join lateral milepost.limit_of(n.name) l on true
            ) t
            order by t.ord);
        handed := array(
            select coalesce(f.released, 0)
            from unnest(names) with ordinality d(name, ord)
            left join milepost.fill_slots(names, allowed, false) f on f.filled = d.name
            order by d.ord);
        perform milepost.settle(names, allowed, handed);
        if 0 < any (handed) then
            perform milepost.wake();
        end if;
    end if;
    if notes = 10000 or cardinality(begun) = 1000 then
        return 0;
    end if;
    return (
        select greatest(0, ceil(extract(epoch from min(n.at) - clock_timestamp()) * 1000))::bigint
        from (
            (select b.look_at as at from milepost.group_bucket b where b.look_at is not null order by b.look_at limit 1)
            union all
            (select l.due_at from milepost.live l where l.timed order by l.due_at limit 1)
        ) n
        having count(*) > 0
    );
end
$$;

-- Debits the buckets of groups for the reserved starts that have happened since the last check, or cannot happen any more. claimed and claimed_at, parallel:
-- the groups and times of starts that were noted; others count as if they happened now. Counts the jobs that still wait for a claim, so that starts are
-- also counted if a program claims that does not know of reservations.
create or replace function milepost.count_starts(names text[], claimed text[], claimed_at timestamptz[]) returns void language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
begin
    update milepost.group_bucket b
    set full_at = milepost.debited(b.full_at, b.reserved - c.reserved::int, l.per_second,
                                   array(select s.at from unnest(claimed, claimed_at) s(name, at) where s.name = b.group_key order by s.at)),
        reserved = c.reserved
    from unnest(names) n(name)
    cross join lateral (
        select count(*) as reserved from milepost.live w where w.group_key = n.name and w.start_reserved and w.ready_at is not null
    ) c
    cross join lateral milepost.limit_of(n.name) l
    where b.group_key = n.name and b.reserved <> c.reserved and l.per_second is not null;
end
$$;

-- Returns when a bucket would be full if its reserved starts happened now.
create or replace function milepost.full_without_reserved(bucket milepost.group_bucket, per_second float8) returns timestamptz language sql stable as $$
    select case when bucket.reserved > 0 then greatest(bucket.full_at, now()) + milepost.cost(bucket.reserved, per_second) else bucket.full_at end
$$;

-- Reserves tokens of groups for the jobs that were released (handed), and sets when to check each group again. allowed: the number of jobs that the tokens
-- allowed. A check that depends on a claim or on the end of a holder has no time: these add a note.
create or replace function milepost.settle(names text[], allowed int[], handed int[]) returns void language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
begin
    update milepost.group_bucket b
    set reserved = b.reserved + d.handed
    from unnest(names, handed) d(name, handed)
    where b.group_key = d.name and d.handed > 0;

    -- The bucket is full and no job waits, or the group has no rate any more: the row is not needed.
    delete from milepost.group_bucket b
    where b.group_key = any (names)
      and (not exists (select from milepost.limit_of(b.group_key) l where l.per_second is not null)
           or b.full_at <= now() and b.reserved = 0
              and not exists (select from milepost.live w where w.group_key = b.group_key and w.due_at is not null and w.timed is null));

    update milepost.group_bucket b
    set look_at = case
        when not exists (select from milepost.live w where w.group_key = b.group_key and w.due_at is not null and w.timed is null) then
            case when b.reserved = 0 then b.full_at end
        when d.handed >= d.allowed then
            case when b.reserved + l.portion <= l.burst then
                greatest(milepost.opens_at(milepost.full_without_reserved(b, l.per_second), l.per_second, l.burst, l.portion),
                         now() + interval '1 millisecond')
            end
        when (select count(*) from milepost.group_slot h where h.group_key = b.group_key) >= l.slots then null
        else now() + interval '50 milliseconds'
        end
    from unnest(names, allowed, handed) d(name, allowed, handed)
    cross join lateral milepost.limit_of(d.name) l
    where b.group_key = d.name;
end
$$;

-- Converts the debts of the buckets that a limit applies to, so that each keeps its number of missing tokens at a new rate. rate: starts per
-- second that apply after the change; null: none.
create or replace function milepost.convert_debts(limited text, rate float8) returns void language sql as $$
    update milepost.group_bucket b
    set full_at = now() + least((b.full_at - now()) * (d.per_second / rate), interval '100000 years')
    from (
        select g.group_key, l.per_second
        from milepost.group_bucket g
        cross join lateral milepost.limit_of(g.group_key) l
        where g.group_key = limited or (milepost.class_of(g.group_key) = limited and l.name = limited)
    ) d
    where b.group_key = d.group_key and b.full_at > now() and d.per_second <> rate
$$;

-- Creates or changes the limit of a group or class; all null: removes it. Returns whether it did: false if a configuration
-- would change an operator's limit, or if there was none to remove. Returns null if a transaction that assigns slots is
-- still open, so that the limit cannot be lowered now.
create or replace function milepost.put_group_limit(
    limited text, slots_max int, rate float8, rate_burst int, rate_portion int, made_by text
) returns boolean language plpgsql as $$
declare
    before milepost.group_limit;
    slots_after int := slots_max;
    rate_after float8 := rate;
    done boolean := true;
begin
    perform pg_advisory_xact_lock(19796, 0);
    perform pg_advisory_xact_lock(19795, 0);
    if made_by = 'config'
       and exists (select from milepost.group_limit g where g.name = limited and g.source = 'operator')
    then
        return false;
    end if;
    select * into before from milepost.limit_of(limited);
    if slots_max is null and rate is null then
        select case when g.name is null then 1 else g.slots end, g.per_second into slots_after, rate_after
        from (select milepost.class_of(limited) as class) c
        left join milepost.group_limit g on g.name = c.class and g.name <> limited;
    end if;
    if before.name is not null and coalesce(slots_after, 2147483647) < coalesce(before.slots, 2147483647)
       and not pg_try_advisory_xact_lock(19794, hashtext(milepost.class_of(limited)))
    then
        return null;
    end if;
    perform milepost.convert_debts(limited, rate_after);
    if slots_max is null and rate is null then
        delete from milepost.group_limit g where g.name = limited;
        done := found;
    else
        insert into milepost.group_limit (name, slots, per_second, burst, portion, source)
        values (limited, slots_max, rate, rate_burst, rate_portion, made_by)
        on conflict (name) do update
        set slots = excluded.slots, per_second = excluded.per_second, burst = excluded.burst,
            portion = excluded.portion, source = excluded.source;
    end if;
    delete from milepost.group_bucket b
    where (b.group_key = limited or milepost.class_of(b.group_key) = limited)
      and not exists (select from milepost.limit_of(b.group_key) l where l.per_second is not null);
    insert into milepost.group_note (group_key, starts)
    select b.group_key, 0 from milepost.group_bucket b
    where b.group_key = limited or milepost.class_of(b.group_key) = limited;
    perform milepost.wake();
    return done;
end
$$;

