-- Groups: their slots, limits and rates. Not public: the functions of api.sql and the library call these.
--
-- Holders never exceed the limit, by structure. Slots are numbered; whoever gives some out takes the lowest free
-- numbers, as many as there are fewer holders than the limit. So no two can take the same one (it is a key), and
-- with a surplus of u holders above a lowered limit of n nobody takes a number above n - u. A limit is lowered
-- under a lock that excludes those who give slots out by the old one (put_group_limit).
--
-- Advisory locks: (19793, slot) somebody is about to take it; (19794, class) shared while slots of its groups are
-- given out, exclusive while a limit is lowered; (19795, 0) one pacer; (19796, 0) one change of limits.

-- The class by which a group can be limited; a group without one stands for itself.
create or replace function milepost.class_of(group_name text) returns text language sql immutable as $$
    select case when strpos(group_name, ':') > 0 then split_part(group_name, ':', 1) || ':*' else group_name end
$$;

-- The limit that a group has: its own, else that of its class.
create or replace function milepost.limit_of(group_name text) returns setof milepost.group_limit
language sql stable as $$
    select * from milepost.group_limit g where g.name = group_name
    union all
    select * from milepost.group_limit g
    where g.name = milepost.class_of(group_name)
      and not exists (select from milepost.group_limit o where o.name = group_name)
$$;

-- Whether nobody else is about to take this slot. One of few locks, which slots share: an enqueue into any number
-- of groups must not use up the server's.
create or replace function milepost.try_slot(group_name text, slot bigint) returns boolean language sql as $$
    select pg_try_advisory_xact_lock(19793, hashtext(group_name || '/' || slot) & 4095)
$$;

-- Gives free slots of groups to the jobs that wait for them, by priority, then due time; starts, aligned with
-- groups: at most so many. A hurried caller, which may hold its transaction open, never waits for another one
-- that is at the same group; upkeep finds what it missed. Answers how many found one.
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
    -- OFFSET 0: each of these is looked up once, however often it is named below.
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
                    -- Nobody else can be at the only slot of a group when its holder hands it on.
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
        set state = 'pending', ready_at = greatest(now(), l.due_at), due_at = null
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

-- Whether each statement of this transaction sees what others have committed before it. In repeatable read and serializable, the holders and
-- limits of groups can be older than the slots that others have given out since.
create or replace function milepost.sees_commits() returns boolean language sql stable as $$
    select current_setting('transaction_isolation') in ('read committed', 'read uncommitted')
$$;

-- Gives free slots of groups to jobs that wait for them; groups that have a rate are noted for the pacer. See
-- fill_slots. A transaction with an old snapshot gives none: the upkeep of workers does so within about a second.
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

-- Frees the slots of jobs that no longer need them and hands them on.
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

-- Takes a slot for a job that an operator releases, if one is free; of a rate it is counted, not refused.
create or replace function milepost.take_slot(group_name text, job uuid) returns boolean language plpgsql as $$
declare
    own milepost.group_limit;
    number bigint;
begin
    if not milepost.sees_commits() then
        raise exception using errcode = 'MP003', message = format('group %s: a job is released in a read committed transaction', group_name),
            hint = 'The snapshot of this transaction does not show which slots of the group are taken by now. Use read committed.';
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

-- Releases what the times of jobs and the rates of groups allow now: lets jobs whose time has come wait for a slot
-- as if they were enqueued at this moment, and looks at groups that were noted and at those whose tokens have come
-- back, each by an index probe. Only one does so at a time; it waits for nobody. Answers in how many ms to
-- look again; null: when something is noted.
create or replace function milepost.pace() returns bigint language plpgsql
set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
declare
    notes int;
    names text[];
    allowed int[];
    handed int[];
    begun text[];
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
        returning group_key, starts
    ),
    kept as (
        insert into milepost.group_bucket as b (group_key, full_at, look_at)
        select s.group_key, now() + milepost.cost(s.starts, l.per_second), now()
        from (select n.group_key, sum(n.starts) as starts from noted n group by n.group_key) s
        cross join lateral milepost.limit_of(s.group_key) l
        where l.per_second is not null
        on conflict (group_key) do update
        set full_at = greatest(b.full_at, now()) + (excluded.full_at - now()), look_at = now()
    )
    select count(*) into notes from noted;

    select array_agg(b.group_key), array_agg(case when b.tokens >= b.portion then b.tokens::int else 0 end)
    into names, allowed
    from (
        select d.group_key, l.portion, floor(milepost.tokens(d.full_at, l.per_second, l.burst)) as tokens
        from (select * from milepost.group_bucket where look_at <= now() order by look_at limit 500) d
        left join lateral milepost.limit_of(d.group_key) l on true
    ) b;
    if names is not null then
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

-- Debits the buckets of groups of which so many were allowed and so many released, and says when to look at
-- each again.
create or replace function milepost.settle(names text[], allowed int[], handed int[]) returns void language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
begin
    update milepost.group_bucket b
    set full_at = greatest(b.full_at, now()) + milepost.cost(d.handed, l.per_second)
    from unnest(names, handed) d(name, handed)
    cross join lateral milepost.limit_of(d.name) l
    where b.group_key = d.name and d.handed > 0 and l.per_second is not null;

    -- Full with nobody waiting, or without a rate by now: nothing to remember.
    delete from milepost.group_bucket b
    where b.group_key = any (names)
      and (not exists (select from milepost.limit_of(b.group_key) l where l.per_second is not null)
           or b.full_at <= now()
              and not exists (select from milepost.live w where w.group_key = b.group_key and w.due_at is not null and w.timed is null));

    update milepost.group_bucket b
    set look_at = case
        when not exists (select from milepost.live w where w.group_key = b.group_key and w.due_at is not null and w.timed is null) then b.full_at
        when d.handed >= d.allowed then
            greatest(milepost.opens_at(b.full_at, l.per_second, l.burst, l.portion), now() + interval '1 millisecond')
        -- The end of a holder is noted.
        when (select count(*) from milepost.group_slot h where h.group_key = b.group_key) >= l.slots then null
        else now() + interval '50 milliseconds'
        end
    from unnest(names, allowed, handed) d(name, allowed, handed)
    cross join lateral milepost.limit_of(d.name) l
    where b.group_key = d.name;
end
$$;

-- Makes or changes the limit of a group or class; all null: removes it. Answers whether there was one, or null
-- when slots are being given out in a transaction that is still open, so that it cannot be lowered now.
create or replace function milepost.put_group_limit(
    limited text, slots_max int, rate float8, rate_burst int, rate_portion int, made_by text
) returns boolean language plpgsql as $$
declare
    before milepost.group_limit;
    slots_after int := slots_max;
    done boolean := true;
begin
    perform pg_advisory_xact_lock(19796, 0);
    if made_by = 'config'
       and exists (select from milepost.group_limit g where g.name = limited and g.source = 'operator')
    then
        return false;
    end if;
    select * into before from milepost.limit_of(limited);
    if slots_max is null and rate is null then
        select case when g.name is null then 1 else g.slots end into slots_after
        from (select milepost.class_of(limited) as class) c
        left join milepost.group_limit g on g.name = c.class and g.name <> limited;
    end if;
    if before.name is not null and coalesce(slots_after, 2147483647) < coalesce(before.slots, 2147483647)
       and not pg_try_advisory_xact_lock(19794, hashtext(milepost.class_of(limited)))
    then
        return null;
    end if;
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
    insert into milepost.group_note (group_key, starts)
    select b.group_key, 0 from milepost.group_bucket b
    where b.group_key = limited or milepost.class_of(b.group_key) = limited;
    perform milepost.wake();
    return done;
end
$$;

