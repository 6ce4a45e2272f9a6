-- Waits of tasks, and the signals that end them. Public: signal, signal_by_key, which join the caller's transaction. A signal only inserts a row;
-- settle_waits ends waits. Reasons and locks: docs/adr/0039-waits.md. SQLSTATEs: see batches.sql.

-- Sends a signal to a batch. payload: the output of the task that waits for it. id: a second signal for the batch with the same id is ignored.
-- payload_checked: the caller has checked the payload against the schema of the wait. Returns 'accepted', 'duplicate', or 'late' if the
-- task has ended.
create or replace function milepost.signal(
    batch uuid, name text, payload jsonb default null, id text default null, payload_checked boolean default false
) returns text language plpgsql security definer
set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
declare
    a milepost.batch;
    awaited record;
    refused text;
begin
    if id is not null and (octet_length(id) not between 1 and 200 or milepost.has_control(id)) then
        raise exception using errcode = 'MP011', message = 'the id of a signal must have 1 to 200 bytes and no control characters';
    end if;
    select * into a from milepost.batch b where b.id = batch;
    if not found then
        raise exception using errcode = 'MP010', message = format('there is no batch %s', batch), detail = 'batch';
    end if;
    if exists (select from milepost.batch_signal s where s.batch_id = batch and s.id = signal.id) then
        return 'duplicate';
    end if;
    select d.spec -> 'wait' as spec, t.state into awaited
    from milepost.dag_task d
    join milepost.batch_task t on t.batch_id = batch and t.task = d.task
    where d.version_id = a.version_id and d.spec ? 'wait' and d.spec #>> '{wait,signal}' = name and a.items_of is null;
    if not found then
        raise exception using errcode = 'MP010', message = format('no task of batch %s waits for a signal %L', batch, left(name, 100)), detail = 'signal';
    end if;
    refused := milepost.refuse_signal(awaited.spec, payload, coalesce(payload_checked, false));
    if refused is not null then
        raise exception using errcode = 'MP011', message = 'the payload of the signal ' || refused, detail = 'payload';
    end if;
    if awaited.state not in ('waiting', 'due', 'active', 'aborted') then
        return 'late';
    end if;
    if (select count(*) from milepost.batch_signal s where s.batch_id = batch and s.name = signal.name and s.state = 'kept') >= 100 then
        raise exception using errcode = 'MP012', message = format('batch %s already keeps 100 signals with this name, the maximum', batch), detail = 'signals';
    end if;
    insert into milepost.batch_signal as s (batch_id, id, name, payload)
    values (batch, coalesce(id, milepost.uuid_v7()::text), name, coalesce(payload, 'null'))
    on conflict on constraint batch_signal_pkey do nothing;
    if not found then
        return 'duplicate';
    end if;
    perform milepost.wake_to_advance();
    return 'accepted';
end
$$;

revoke execute on function milepost.signal from public;

-- The same, for the batch of a DAG with this key.
create or replace function milepost.signal_by_key(
    dag text, key text, name text, payload jsonb default null, id text default null, payload_checked boolean default false
) returns text language plpgsql security definer
set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
declare
    found_batch uuid;
begin
    select b.id into found_batch from milepost.batch b where b.dag = signal_by_key.dag and b.key = signal_by_key.key;
    if not found then
        raise exception using errcode = 'MP010',
            message = format('the DAG %L has no batch with the key %L', left(dag, 100), left(key, 100)), detail = 'batch';
    end if;
    return milepost.signal(found_batch, name, payload, id, payload_checked);
end
$$;

revoke execute on function milepost.signal_by_key from public;

-- Returns why a payload cannot be used for a wait; null if it can.
create or replace function milepost.refuse_signal(spec jsonb, payload jsonb, payload_checked boolean) returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp as $$
declare
    refused text := milepost.refuse_document(payload, 65536);
begin
    if refused is not null then
        return refused;
    end if;
    if spec ? 'choices' and not coalesce((payload -> 'choice') <@ (spec -> 'choices') and jsonb_typeof(payload -> 'choice') = 'string', false) then
        return format('must have a member "choice" with one of these values: %s',
                      (select string_agg(c.choice, ', ') from jsonb_array_elements_text(spec -> 'choices') c(choice)));
    end if;
    if spec ? 'schema' and not payload_checked then
        return 'has a schema, which cannot be checked in SQL: send it with the library, the API or `milepost batch signal`; '
            'or check it and pass payload_checked => true';
    end if;
    return null;
end
$$;

-- Makes a due task wait. timeout_ms: the time from now; until: a fixed time. why: for the history. Does nothing if the task is no longer due, or its
-- batch is stopped.
create or replace function milepost.begin_wait(
    of_batch uuid, of_task int, signal text, timeout_ms bigint, until timestamptz, on_timeout milepost.task_state, why text
) returns void language plpgsql as $$
#variable_conflict use_variable
begin
    update milepost.batch_task t set state = 'active', job_id = null, child_id = null
    where t.batch_id = of_batch and t.task = of_task and t.state = 'due'
      and (select b.stop is null from milepost.batch b where b.id = of_batch);
    if not found then
        return;
    end if;
    insert into milepost.batch_wait as w (batch_id, task, signal, until, on_timeout, check_at)
    values (of_batch, of_task, signal, coalesce(until, now() + timeout_ms * interval '1 millisecond'), on_timeout, now())
    on conflict (batch_id, task) do update
    set signal = excluded.signal, since = excluded.since, until = excluded.until, on_timeout = excluded.on_timeout,
        check_at = excluded.check_at, output = null;
    insert into milepost.batch_history (batch_id, generation, task, verb, from_state, to_state, note)
    select of_batch, t.generation, of_task, 'release', 'due', 'active', why
    from milepost.batch_task t where t.batch_id = of_batch and t.task = of_task;
    perform milepost.count_moves(array[of_batch], array['due'::milepost.task_state], array['active'::milepost.task_state], array[1]);
    perform milepost.wake_to_advance();
end
$$;

-- Checks new signals, and waits that are new or whose time has come, up to `most` of each; ends those that a signal or the time ends. A stored
-- signal precedes the time, as `decide` in milepost_core::batch::wait. Returns how many were checked, and what `settle` returns.
create or replace function milepost.settle_waits(most int, out checked int, out due_made int, out spread_left int) language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set join_collapse_limit = 1 set jit = off as $$
declare
    taken record;
    ends record;
    seen int;
begin
    due_made := 0;
    spread_left := 0;
    -- A family that an operator has locked is checked later, as are rows that another session checks.
    with fresh as materialized (
        select s.batch_id, s.id, s.name from milepost.batch_signal s where s.is_new order by s.pos limit most for update skip locked
    ),
    chosen as materialized (
        select d.batch_id, d.task
        from (select w.batch_id, w.task from milepost.batch_wait w where w.check_at <= now() order by w.check_at limit most) d
        union
        select w.batch_id, w.task from fresh f join milepost.batch_wait w on w.batch_id = f.batch_id and w.signal = f.name
    ),
    locked as materialized (
        select w.batch_id, w.task
        from chosen c
        join milepost.batch_wait w on w.batch_id = c.batch_id and w.task = c.task
        where pg_try_advisory_xact_lock_shared(19797, milepost.settling_bucket(w.batch_id))
        for update of w skip locked
    )
    select l.batches, l.tasks, f.signal_batches, f.signals
    into taken
    from (select array_agg(k.batch_id) as batches, array_agg(k.task) as tasks from locked k) l,
         (select array_agg(s.batch_id) as signal_batches, array_agg(s.id) as signals from fresh s) f;
    -- In a later snapshot, which sees all changes by operators before they released the right to settle.
    with judged as materialized (
        select w.batch_id, w.task, w.signal, w.until, w.on_timeout, t.state = 'active' as waits, s.id, s.payload
        from unnest(taken.batches, taken.tasks) i(batch_id, task)
        join milepost.batch_wait w on w.batch_id = i.batch_id and w.task = i.task
        cross join lateral milepost.batch_task_of(w.batch_id, w.task) t
        left join lateral (
            select k.id, k.payload from milepost.batch_signal k
            where k.batch_id = w.batch_id and k.name = w.signal and k.state = 'kept' and t.state = 'active'
            order by k.pos limit 1
        ) s on true
    ),
    decided as materialized (
        select j.*,
               case when not j.waits then null
                    when j.id is not null then 'succeeded'::milepost.task_state
                    when j.until <= now() then j.on_timeout end as state_after
        from judged j
    ),
    marked as (
        update milepost.batch_wait w
        set check_at = case when d.waits and d.state_after is null then d.until end,
            output = case when d.id is not null then d.payload else w.output end
        from decided d where w.batch_id = d.batch_id and w.task = d.task
    ),
    used as (
        update milepost.batch_signal s set state = 'used', is_new = null
        from decided d where s.batch_id = d.batch_id and s.id = d.id
    )
    select count(*)::int as number,
           array_agg(d.batch_id order by d.batch_id, d.task) filter (where d.state_after is not null) as batches,
           array_agg(d.task order by d.batch_id, d.task) filter (where d.state_after is not null) as tasks,
           array_agg(d.state_after order by d.batch_id, d.task) filter (where d.state_after is not null) as states,
           array_agg(case when d.id is not null then format('the signal %s (%s) arrived', d.signal, d.id)
                          when d.signal is null then 'its time has come'
                          else format('timeout: the signal %s did not arrive in time', d.signal) end
                     order by d.batch_id, d.task) filter (where d.state_after is not null) as whys
    into ends from decided d;
    -- A signal whose wait could not be locked stays new. One without a wait is found by the wait, when it begins.
    update milepost.batch_signal s set is_new = null
    from unnest(taken.signal_batches, taken.signals) i(batch_id, id)
    where s.batch_id = i.batch_id and s.id = i.id and s.is_new
      and not exists (
          select from milepost.batch_wait w
          where w.batch_id = s.batch_id and w.signal = s.name
            and not exists (select from unnest(taken.batches, taken.tasks) l(batch_id, task) where l.batch_id = w.batch_id and l.task = w.task));
    get diagnostics seen = row_count;
    checked := ends.number + seen;
    if ends.batches is not null then
        select s.due_made, s.spread_left into due_made, spread_left
        from milepost.settle(ends.batches, ends.tasks, ends.states, ends.whys) s;
    end if;
end
$$;

-- Discards the waits of these tasks of a batch, which are rerun, and the signals that they did not use. The caller has locked the batch.
create or replace function milepost.forget_waits(a milepost.batch, of_tasks int[]) returns void language plpgsql as $$
begin
    delete from milepost.batch_wait w where w.batch_id = a.id and w.task = any (of_tasks);
    update milepost.batch_signal s set state = 'unused', is_new = null
    where s.batch_id = a.id and s.state = 'kept' and s.name in (
        select d.spec #>> '{wait,signal}' from milepost.dag_task d
        where d.version_id = a.version_id and d.task = any (of_tasks) and d.spec ? 'wait');
end
$$;
