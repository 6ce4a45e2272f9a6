-- Batches: the consequences of ends of tasks. Not public: batches.sql, the functions of api.sql and the library call these.
--
-- Locks, in this order: jobs (live, by ID), then for each depth of batches, the deepest first: the tasks that end, their
-- successors (by batch and number), the batches (by descending ID); then groups. An advisory lock before all of these: (19797,
-- bucket of the batch), shared while its ends are settled, exclusive while an operator changes which tasks run. A batch and its
-- child batches have the same bucket, because operators' actions go from parents to children, and ends in the opposite direction.

-- Returns the key of the advisory lock (19797, …) for a batch and all its parents and children. There are only a few such
-- locks, which families of batches share.
create or replace function milepost.settling_bucket(batch uuid) returns int language sql immutable parallel safe as $$
    select get_byte(uuid_send(batch), 15)
$$;

-- Returns an ID for a child batch: its last byte, which is otherwise random, is that of the parent, so both have the same
-- bucket.
create or replace function milepost.inner_batch_id(outer_batch uuid) returns uuid language plpgsql volatile as $$
begin
    return encode(set_byte(uuid_send(milepost.uuid_v7()), 15, get_byte(uuid_send(outer_batch), 15)), 'hex')::uuid;
end
$$;

-- Takes the advisory lock for settling these batches: shared, or exclusive with `alone`.
create or replace function milepost.join_settling(batches uuid[], alone boolean default false) returns void
language plpgsql as $$
declare
    bucket int;
begin
    for bucket in select distinct milepost.settling_bucket(b) from (select distinct u as b from unnest(batches) u) d order by 1 loop
        if alone then
            perform pg_advisory_xact_lock(19797, bucket);
        else
            perform pg_advisory_xact_lock_shared(19797, bucket);
        end if;
    end loop;
end
$$;

-- Adds state changes of tasks to the counts of their batches: for each batch, a number of tasks that changed from one state
-- to another. Returns the tasks around batches whose state changed, with their new states. cause, why: an operator's action, for the
-- history.
create or replace function milepost.add_moves(
    batches uuid[], was milepost.task_state[], states milepost.task_state[], numbers int[], cause milepost.verb, why text,
    out parents uuid[], out parent_tasks int[], out parent_states milepost.task_state[]
) language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set join_collapse_limit = 1 set jit = off as $$
begin
    perform from milepost.batch where id = any (batches) order by depth desc, id desc for no key update;
    with moved as materialized (
        select m.batch_id,
               sum((m.state = 'waiting')::int * m.n - (m.was = 'waiting')::int * m.n)::int as waiting,
               sum((m.state = 'due')::int * m.n - (m.was = 'due')::int * m.n)::int as due,
               sum((m.state = 'active')::int * m.n - (m.was = 'active')::int * m.n)::int as active,
               sum((m.state = 'failed')::int * m.n - (m.was = 'failed')::int * m.n)::int as failed,
               sum((m.state = 'aborted')::int * m.n - (m.was = 'aborted')::int * m.n)::int as aborted,
               sum((m.state = 'succeeded')::int * m.n - (m.was = 'succeeded')::int * m.n)::int as succeeded,
               sum((m.state = 'skipped')::int * m.n - (m.was = 'skipped')::int * m.n)::int as skipped,
               sum((m.state = 'canceled')::int * m.n - (m.was = 'canceled')::int * m.n)::int as canceled
        from unnest(batches, was, states, numbers) m(batch_id, was, state, n)
        group by m.batch_id
    ),
    summed as materialized (
        select a.id, a.state as was, a.generation, a.parent_id, a.parent_task, a.stop is not null as stopped, m.waiting, m.due, m.active,
               m.failed, m.aborted, m.succeeded, m.skipped, m.canceled, a.waiting + m.waiting as all_waiting, a.due + m.due as all_due,
               -- While ends are still to be counted, the batch is active, whatever its counts are.
               a.active + m.active + exists (select from milepost.batch_spread s where s.batch_id = a.id)::int as all_active,
               a.failed + m.failed as all_failed, a.aborted + m.aborted as all_aborted, a.canceled + m.canceled as all_canceled
        from moved m
        join milepost.batch a on a.id = m.batch_id
    ),
    after as materialized (
        select s.*, milepost.batch_state_of(s.stopped, s.all_waiting, s.all_due, s.all_active, s.all_failed, s.all_aborted, s.all_canceled) as state
        from summed s
    ),
    counted as (
        update milepost.batch a
        set waiting = a.waiting + n.waiting, due = a.due + n.due, active = a.active + n.active, failed = a.failed + n.failed,
            aborted = a.aborted + n.aborted, succeeded = a.succeeded + n.succeeded, skipped = a.skipped + n.skipped,
            canceled = a.canceled + n.canceled, state = n.state, updated_at = now(),
            ended_at = case when n.state in ('done', 'canceled') then now() end
        from after n
        where a.id = n.id
    ),
    logged as (
        insert into milepost.batch_history (batch_id, generation, verb, from_state, to_state, note)
        select n.id, n.generation,
               coalesce(cause, case n.state when 'running' then 'resume' when 'done' then 'succeed' when 'failed' then 'fail'
                            when 'aborted' then 'abort' else 'cancel' end::milepost.verb),
               n.was, n.state, why
        from after n where n.state <> n.was
    )
    select array_agg(n.parent_id), array_agg(n.parent_task), array_agg(milepost.task_state_of(n.state))
    into parents, parent_tasks, parent_states
    from after n
    cross join lateral milepost.batch_task_of(n.parent_id, n.parent_task) t
    where n.state <> n.was and t.child_id = n.id;
end
$$;

-- The same, and settles the tasks around batches whose state changed.
create or replace function milepost.count_moves(
    batches uuid[], was milepost.task_state[], states milepost.task_state[], numbers int[], cause milepost.verb default null,
    why text default null
) returns void language plpgsql as $$
declare
    around record;
begin
    select * into around from milepost.add_moves(batches, was, states, numbers, cause, why);
    if around.parents is not null then
        perform milepost.settle(around.parents, around.parent_tasks, around.parent_states);
    end if;
end
$$;

-- Creates the jobs of tasks with these IDs, with these payloads or those of the definition. Returns the groups in which some
-- of them wait; the caller assigns slots after all other writes.
create or replace function milepost.make_task_jobs(
    batches uuid[], tasks int[], ids uuid[], payloads jsonb[] default null
) returns text[] language plpgsql
set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set join_collapse_limit = 1 set jit = off as $$
declare
    groups text[];
begin
    with made as materialized (
        select i.id, i.batch_id, i.task, coalesce(i.payload, d.spec -> 'payload', '{}') as payload, d.kind, d.queue, d.group_key,
               d.priority, d.max_attempts, d.timeout_ms, a.nominal_at, a.traceparent,
               case when d.group_key is null then 'pending' else 'blocked' end::milepost.job_state as state
        from unnest(batches, tasks, ids, payloads) i(batch_id, task, id, payload)
        join milepost.batch a on a.id = i.batch_id
        cross join lateral milepost.dag_task_of(a.version_id, coalesce(a.items_of, i.task)) d
    ),
    jobs as (
        insert into milepost.job (id, kind, queue, payload, group_key, priority, max_attempts, timeout_ms, created_at, nominal_at,
                                  traceparent, batch_id, task)
        select id, kind, queue, payload, group_key, priority, max_attempts, timeout_ms, now(), nominal_at, traceparent, batch_id, task
        from made
    ),
    lives as (
        insert into milepost.live (id, kind, queue, priority, group_key, max_attempts, state, ready_at, due_at)
        select id, kind, queue, priority, group_key, max_attempts, state,
               case when group_key is null then now() end, case when group_key is not null then now() end
        from made
    ),
    begun as (
        insert into milepost.history (job_id, token, attempt, verb, to_state)
        select id, 0, 0, 'create', state from made
    )
    select array(select group_key from made where group_key is not null) into groups;
    return groups;
end
$$;

-- Sets the states of tasks and applies all consequences: counts their ends in their successors, decides these, creates the
-- jobs of those that can run, skips those that never can, updates the counts of batches, and settles the tasks around batches
-- whose state changed. Counts at most `room` successors; the rest is queued in batch_spread. whys: for the history. Returns the
-- number of tasks that became due, and the number of ends that are still to be counted.
--
-- cause, why: an operator's action, for the history of the batches. from_positions: for ends that were partly counted
-- before; `was` and `states` are then the recorded changes, and `room` successors from these positions on are counted. All
-- these batches must have the same depth.
create or replace function milepost.settle(
    batches uuid[], tasks int[], states milepost.task_state[], whys text[] default null, room int default 10000,
    was milepost.task_state[] default null, from_positions int[] default null, cause milepost.verb default null,
    why text default null, out due_made int, out spread_left int
) language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set join_collapse_limit = 1 set jit = off as $$
declare
    level record;
    higher record;
    waiting_groups text[] := '{}';
    jobs_made int := 0;
begin
    due_made := 0;
    spread_left := 0;
    perform milepost.join_settling(batches);
    while cardinality(tasks) > 0 loop
        -- The deepest batches first: what follows for the tasks around them is settled together with tasks at that depth, so that
        -- all transactions lock in the same order.
        select null::uuid[] as batches, null::int[] as tasks, null::milepost.task_state[] as states, null::text[] as whys into higher;
        if was is null and batches[1] <> any (batches) then
            select * into higher from milepost.split_off_deepest(batches, tasks, states, whys);
            if higher.batches is not null then
                batches := higher.deep_batches;
                tasks := higher.deep_tasks;
                states := higher.deep_states;
                whys := higher.deep_whys;
            end if;
        end if;
        select * into level from milepost.settle_level(batches, tasks, states, whys, room, was, from_positions, cause, why);
        due_made := due_made + level.due_made;
        spread_left := spread_left + level.spread_left;
        waiting_groups := waiting_groups || level.waiting_groups;
        jobs_made := jobs_made + level.jobs_made;
        batches := higher.batches || level.parents;
        tasks := higher.tasks || level.parent_tasks;
        states := higher.states || level.parent_states;
        whys := higher.whys || array_fill(null::text, array[coalesce(cardinality(level.parents), 0)]);
        room := 10000;
        was := null;
        from_positions := null;
        cause := null;
        why := null;
    end loop;
    if cardinality(waiting_groups) > 0 then
        perform milepost.hand_over(waiting_groups, true);
    end if;
    if jobs_made > 0 then
        perform milepost.wake();
    end if;
end
$$;

-- Splits tasks of batches at several depths into those of the deepest batches and the others; all null if there is only one depth.
-- It has the settings of `settle`.
create or replace function milepost.split_off_deepest(
    of_batches uuid[], of_tasks int[], of_states milepost.task_state[], of_whys text[],
    out batches uuid[], out tasks int[], out states milepost.task_state[], out whys text[],
    out deep_batches uuid[], out deep_tasks int[], out deep_states milepost.task_state[], out deep_whys text[]
) language plpgsql as $$
declare
    deepest int;
begin
    select case when min(b.depth) < max(b.depth) then max(b.depth) end into deepest
    from (select distinct u as id from unnest(of_batches) u) given
    join milepost.batch b on b.id = given.id;
    if deepest is null then
        return;
    end if;
    select array_agg(i.batch_id) filter (where b.depth < deepest), array_agg(i.task) filter (where b.depth < deepest),
           array_agg(i.state) filter (where b.depth < deepest), array_agg(i.why) filter (where b.depth < deepest),
           array_agg(i.batch_id) filter (where b.depth = deepest), array_agg(i.task) filter (where b.depth = deepest),
           array_agg(i.state) filter (where b.depth = deepest), array_agg(i.why) filter (where b.depth = deepest)
    into batches, tasks, states, whys, deep_batches, deep_tasks, deep_states, deep_whys
    from unnest(of_batches, of_tasks, of_states, of_whys) i(batch_id, task, state, why)
    join milepost.batch b on b.id = i.batch_id;
end
$$;

-- Settles tasks of batches at one depth, with the settings of `settle`. Returns what `settle` collects, and the tasks around batches
-- whose state changed.
create or replace function milepost.settle_level(
    batches uuid[], tasks int[], states milepost.task_state[], whys text[], room int, was milepost.task_state[],
    from_positions int[], cause milepost.verb, why text, out due_made int, out spread_left int, out waiting_groups text[],
    out jobs_made int, out parents uuid[], out parent_tasks int[], out parent_states milepost.task_state[]
) language plpgsql as $$
declare
    page int := room;
    befores milepost.task_state[];
    round record;
    log_batches uuid[] := '{}';
    log_was milepost.task_state[] := '{}';
    log_states milepost.task_state[] := '{}';
    log_numbers int[] := '{}';
begin
    due_made := 0;
    spread_left := 0;
    jobs_made := 0;
    waiting_groups := '{}';
    if was is not null then
        -- The state of a batch depends on whether ends are still queued, so these batches are counted even without a change.
        log_batches := array(select distinct u from unnest(batches) u);
        log_was := array_fill('waiting'::milepost.task_state, array[cardinality(log_batches)]);
        log_states := log_was;
        log_numbers := array_fill(0, array[cardinality(log_batches)]);
    end if;
    while cardinality(tasks) > 0 loop
        -- The rows of these tasks first, which only this transaction updates; those of successors, for which many may wait,
        -- as late as possible.
        befores := coalesce(was, milepost.move_tasks(batches, tasks, states, whys, cause));
        select * into round from milepost.count_ends(batches, tasks, befores, states, from_positions, room, page);
        room := room - round.edges;
        spread_left := spread_left + round.left_out;
        if was is null then
            select log_batches || array_agg(o.batch_id), log_was || array_agg(o.before), log_states || array_agg(o.state),
                   log_numbers || array_agg(o.number)
            into log_batches, log_was, log_states, log_numbers
            from (
                select i.batch_id, i.before, i.state, count(*)::int as number
                from unnest(batches, befores, states) i(batch_id, before, state)
                where i.before <> i.state group by 1, 2, 3
            ) o;
        end if;
        log_batches := log_batches || round.change_batches;
        log_was := log_was || round.change_was;
        log_states := log_states || round.change_states;
        log_numbers := log_numbers || round.change_numbers;
        due_made := due_made + coalesce(round.due, 0);
        if round.job_ids is not null then
            jobs_made := jobs_made + cardinality(round.job_ids);
            waiting_groups := waiting_groups || milepost.make_task_jobs(round.job_batches, round.job_tasks, round.job_ids);
        end if;
        -- Skipped tasks have ended too.
        batches := round.skip_batches;
        tasks := round.skip_tasks;
        states := array_fill('skipped'::milepost.task_state, array[coalesce(cardinality(tasks), 0)]);
        whys := array_fill('its rule can no longer be met'::text, array[coalesce(cardinality(tasks), 0)]);
        was := null;
        from_positions := null;
    end loop;
    if cardinality(log_batches) > 0 then
        select * into parents, parent_tasks, parent_states
        from milepost.add_moves(log_batches, log_was, log_states, log_numbers, cause, why);
    end if;
end
$$;

-- Sets the states of tasks and returns the previous ones. Changes of a task without a job are recorded in the history of its
-- batch, since there is no other. cause: an operator's action. An active task without a job and without a batch waits.
create or replace function milepost.move_tasks(
    batches uuid[], tasks int[], states milepost.task_state[], whys text[], cause milepost.verb
) returns milepost.task_state[] language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set join_collapse_limit = 1 set jit = off as $$
declare
    befores milepost.task_state[];
begin
    with told as materialized (
        -- A task is decided in the generation in which it leaves 'waiting'.
        select i.ord, i.batch_id, i.task, i.state, i.why, t.state as was, t.job_id, t.child_id,
               case when 'waiting' in (t.state, i.state) then (select b.generation from milepost.batch b where b.id = i.batch_id)
                    else t.generation end as generation
        from unnest(batches, tasks, states, whys) with ordinality i(batch_id, task, state, why, ord)
        cross join lateral milepost.batch_task_of(i.batch_id, i.task) t
    ),
    logged as (
        insert into milepost.batch_history (batch_id, generation, task, job_id, verb, from_state, to_state, note)
        select t.batch_id, t.generation, t.task, case when t.state = 'waiting' then t.job_id end,
               case t.state when 'skipped' then 'skip' when 'canceled' then 'cancel' when 'failed' then 'fail' when 'aborted' then 'abort'
                             when 'succeeded' then case when t.child_id is null and (t.was <> 'active' or cause = 'mark') then 'mark' else 'succeed' end
                             when 'waiting' then 'rerun' else case t.was when 'aborted' then 'resume' else 'release' end end::milepost.verb,
               t.was, t.state, t.why
        from told t
        where t.state <> t.was and (t.job_id is null or t.state = 'waiting')
    ),
    moved as (
        update milepost.batch_task t
        set state = i.state, generation = i.generation
        from told i
        where t.batch_id = i.batch_id and t.task = i.task and i.state <> i.was
    )
    select array_agg(t.was order by t.ord) into befores from told t;
    return befores;
end
$$;

-- Counts the ends of these tasks in their successors and decides waiting ones. An end that is taken back (its new state is
-- open) is counted too, but decides nothing: a rerun decides after all ends are taken back.
--
-- Counts the first ends that fit into `room`. Tasks with many successors are counted page by page, in a transaction each. If
-- earlier ends of the same task are queued, the end is queued behind them. from_positions: counts the successors from there
-- on, at most a page. Returns the number of successors counted, the number of ends left out, and the consequences: jobs to
-- create, tasks that are skipped, and the numbers of state changes.
create or replace function milepost.count_ends(
    of_batches uuid[], of_tasks int[], befores milepost.task_state[], states milepost.task_state[], from_positions int[], room int, page int,
    out edges int, out left_out int, out job_batches uuid[], out job_tasks int[], out job_ids uuid[], out skip_batches uuid[],
    out skip_tasks int[], out change_batches uuid[], out change_was milepost.task_state[], out change_states milepost.task_state[],
    out change_numbers int[], out due int
) language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set join_collapse_limit = 1 set jit = off as $$
declare
    versions bigint[];
    generations int[];
    stops boolean[];
    opens int[];
    succeededs int[];
    faileds int[];
    skippeds int[];
    canceleds int[];
begin
    with given as materialized (
        -- The changes that each end makes to the counters of each successor.
        select i.ord, i.batch_id, i.task, i.before, i.state, i.place, a.version_id, a.generation, a.stop is not null as is_stopped, d.successors,
               coalesce(cardinality(d.successors), 0) as number,
               not (milepost.is_open(i.before) and milepost.is_open(i.state)) as counts,
               milepost.is_open(i.state)::int - milepost.is_open(i.before)::int as open,
               (i.state = 'succeeded')::int - (i.before = 'succeeded')::int as succeeded,
               (i.state = 'failed')::int - (i.before = 'failed')::int as failed,
               (i.state = 'skipped')::int - (i.before = 'skipped')::int as skipped,
               (i.state = 'canceled')::int - (i.before = 'canceled')::int as canceled
        from unnest(of_batches, of_tasks, befores, states, from_positions) with ordinality i(batch_id, task, before, state, place, ord)
        join milepost.batch a on a.id = i.batch_id
        left join lateral milepost.dag_task_of(a.version_id, i.task) d on a.items_of is null
    ),
    paged as materialized (
        select g.*, g.place is not null or g.number = 0
                    or (g.number <= 2000 or room = 2147483647) and sum(g.number) over (order by g.ord) <= room
                       and not exists (select from milepost.batch_spread s where s.batch_id = g.batch_id and s.task = g.task offset 0) as here
        from given g
    ),
    spread as (
        insert into milepost.batch_spread (batch_id, task, was, state)
        select p.batch_id, p.task, p.before, p.state
        from paged p
        where p.counts and not p.here
        returning 1
    ),
    edge as materialized (
        select p.batch_id, unnest(milepost.slice(p.successors, p.place, page)) as task, p.version_id, p.generation, p.is_stopped, p.open,
               p.succeeded, p.failed, p.skipped, p.canceled
        from paged p
        where p.counts and p.here
    ),
    difference as materialized (
        -- An edge from an end that is taken back adds 1 to the open predecessors, every other one 0 or -1.
        select e.batch_id, e.task, max(e.version_id) as version_id, max(e.generation) as generation, bool_or(e.is_stopped) as is_stopped, min(e.open) <= 0 as ends,
               sum(e.open)::int as open, sum(e.succeeded)::int as succeeded, sum(e.failed)::int as failed,
               sum(e.skipped)::int as skipped, sum(e.canceled)::int as canceled
        from edge e
        group by e.batch_id, e.task
        order by e.batch_id, e.task
    ),
    numbered as materialized (
        select row_number() over () as ord, x.* from difference x
    ),
    -- Updates all but those whose last open predecessor ended: these change again below, and no other transaction counts in them, because operators'
    -- actions wait for all counting. Locked in the order of the key, whatever the plan: of the scan of the differences, or of the index.
    counted as (
        update milepost.batch_task t
        set pre_cnt = t.pre_cnt + x.open, succeeded = t.succeeded + x.succeeded, failed = t.failed + x.failed,
            skipped = t.skipped + x.skipped, canceled = t.canceled + x.canceled
        from numbered x
        where t.batch_id = x.batch_id and t.task = x.task and not (x.ends and t.state = 'waiting' and t.pre_cnt + x.open = 0)
        -- While predecessors are open, every rule waits, unless one was skipped or canceled.
        returning x.ord, x.ends and t.state = 'waiting' and t.skipped + t.canceled > 0 as can_decide
    ),
    rest as (
        select x.*, (x.ord in (select c.ord from counted c))::int as counted
        from numbered x
        where x.ord not in (select c.ord from counted c where not c.can_decide)
    )
    select (select count(*) from edge)::int, (select count(*) from spread)::int, array_agg(r.batch_id), array_agg(r.task), array_agg(r.version_id),
           array_agg(r.generation), array_agg(r.is_stopped), array_agg((1 - r.counted) * r.open), array_agg((1 - r.counted) * r.succeeded),
           array_agg((1 - r.counted) * r.failed), array_agg((1 - r.counted) * r.skipped), array_agg((1 - r.counted) * r.canceled)
    into edges, left_out, job_batches, job_tasks, versions, generations, stops, opens, succeededs, faileds, skippeds, canceleds
    from rest r;
    if job_tasks is null then
        return;
    end if;
    with next as materialized (
        select i.batch_id, i.task, i.generation, i.open, i.succeeded, i.failed, i.skipped, i.canceled, d.decision,
               case when d.decision is distinct from 'run' then t.state
                    when k.plain and not i.is_stopped then 'active'::milepost.task_state else 'due' end as state,
               case when d.decision = 'run' and k.plain and not i.is_stopped then milepost.uuid_v7() end as job_id
        from unnest(job_batches, job_tasks, versions, generations, stops, opens, succeededs, faileds, skippeds, canceleds)
            i(batch_id, task, version_id, generation, is_stopped, open, succeeded, failed, skipped, canceled)
        cross join lateral milepost.batch_task_of(i.batch_id, i.task) t
        cross join lateral milepost.dag_task_of(i.version_id, i.task) k
        cross join lateral (
            select milepost.decide(k.rule, t.pre_cnt + i.open, t.succeeded + i.succeeded, t.failed + i.failed, t.skipped + i.skipped,
                                   t.canceled + i.canceled) as decision
            offset 0
        ) d
    ),
    moved as (
        update milepost.batch_task t
        set state = n.state, job_id = coalesce(n.job_id, t.job_id), pre_cnt = t.pre_cnt + n.open, succeeded = t.succeeded + n.succeeded,
            failed = t.failed + n.failed, skipped = t.skipped + n.skipped, canceled = t.canceled + n.canceled,
            generation = case when n.decision = 'run' then n.generation else t.generation end
        from next n
        where t.batch_id = n.batch_id and t.task = n.task
          and (n.decision = 'run' or (n.open, n.succeeded, n.failed, n.skipped, n.canceled) <> (0, 0, 0, 0, 0))
    ),
    steps as materialized (
        select n.batch_id, n.state, count(*)::int as number from next n where n.decision = 'run' group by 1, 2
    ),
    jobs as (
        select array_agg(n.batch_id) as batches, array_agg(n.task) as tasks, array_agg(n.job_id) as ids from next n where n.job_id is not null
    ),
    skips as (
        select array_agg(n.batch_id) as batches, array_agg(n.task) as tasks from next n where n.decision = 'skip'
    ),
    changes as (
        select array_agg(s.batch_id) as batches, array_agg('waiting'::milepost.task_state) as was, array_agg(s.state) as states,
               array_agg(s.number) as numbers, sum(s.number) filter (where s.state = 'due')::int as due
        from steps s
    )
    select j.batches, j.tasks, j.ids, k.batches, k.tasks, c.batches, c.was, c.states, c.numbers, c.due
    into job_batches, job_tasks, job_ids, skip_batches, skip_tasks, change_batches, change_was, change_states, change_numbers, due
    from jobs j, skips k, changes c;
end
$$;
