-- Batches: what follows from the end of tasks. Not public: batches.sql, the functions of api.sql and the library call these.
--
-- Locks, in this order: jobs (live, by id), tasks (by batch and number), batches (descending, so that inner ones come
-- before those they are tasks of), groups. Advisory: (19797, bucket of the batch) shared while its ends are settled, exclusive
-- while an operator changes which tasks run.

-- Whether the end of a task in this state is open.
create or replace function milepost.is_open(state milepost.task_state) returns boolean language sql immutable parallel safe as $$
    select state in ('waiting', 'due', 'active', 'aborted')
$$;

-- The state of a task whose job is in this state.
create or replace function milepost.task_state_of(state milepost.job_state) returns milepost.task_state
language sql immutable parallel safe as $$
    select case when state in ('blocked', 'pending', 'running', 'retry_wait') then 'active' else state::text end::milepost.task_state
$$;

-- The state of a task that is a batch in this state.
create or replace function milepost.task_state_of(state milepost.batch_state) returns milepost.task_state
language sql immutable parallel safe as $$
    select case state when 'running' then 'active' when 'done' then 'succeeded' else state::text end::milepost.task_state
$$;

-- What a task does by how its predecessors ended: run, skip or wait. As the library's decide; a test holds the two against
-- each other for every tally.
create or replace function milepost.decide(
    rule milepost.task_rule, pre_cnt int, succeeded int, failed int, skipped int, canceled int
) returns text language sql immutable parallel safe as $$
    select case
        when rule = 'all_success' and skipped + canceled > 0 then 'skip'
        when rule = 'none_failed' and canceled > 0 then 'skip'
        when pre_cnt > 0 then 'wait'
        when rule in ('all_success', 'none_failed') and failed > 0 then 'wait'
        when rule in ('all_success', 'none_failed', 'all_done', 'always') then 'run'
        when rule = 'one_success' then case when succeeded > 0 then 'run' when failed > 0 then 'wait' else 'skip' end
        when failed > 0 then 'run'
        else 'skip'
    end
$$;

-- The state of a batch whose tasks stand so. As the library's Counts::state; a test holds the two against each other.
create or replace function milepost.batch_state_of(
    stopped boolean, waiting int, due int, active int, failed int, aborted int, canceled int
) returns milepost.batch_state language sql immutable parallel safe as $$
    select (case
        when active > 0 or (due > 0 and not stopped) then 'running'
        when aborted > 0 or (stopped and waiting + due > 0) then 'aborted'
        when failed > 0 then 'failed'
        when waiting + due > 0 then 'running'
        when canceled > 0 then 'canceled'
        else 'done'
    end)::milepost.batch_state
$$;

-- Takes part in settling these batches, or (alone) keeps others from it. Few locks, which batches share.
create or replace function milepost.join_settling(batches uuid[], alone boolean default false) returns void
language plpgsql as $$
declare
    bucket int;
begin
    for bucket in select distinct hashtext(b::text) & 255 from unnest(batches) b order by 1 loop
        if alone then
            perform pg_advisory_xact_lock(19797, bucket);
        else
            perform pg_advisory_xact_lock_shared(19797, bucket);
        end if;
    end loop;
end
$$;

-- Adds what tasks did to the counts of their batches: so many went from one state to another. A batch whose state
-- changes thereby says so to the task that it is.
create or replace function milepost.count_moves(
    batches uuid[], was milepost.task_state[], states milepost.task_state[], numbers int[], why text default null
) returns void language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
declare
    parents uuid[];
    parent_tasks int[];
    parent_states milepost.task_state[];
begin
    perform from milepost.batch where id = any (batches) order by id desc for no key update;
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
    after as materialized (
        select a.id, a.state as was, a.generation, a.parent_id, a.parent_task, m.waiting, m.due, m.active, m.failed, m.aborted,
               m.succeeded, m.skipped, m.canceled,
               milepost.batch_state_of(a.stop is not null, a.waiting + m.waiting, a.due + m.due, a.active + m.active,
                                       a.failed + m.failed, a.aborted + m.aborted, a.canceled + m.canceled) as state
        from moved m
        join milepost.batch a on a.id = m.batch_id
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
               case n.state when 'running' then 'resume' when 'done' then 'succeed' when 'failed' then 'fail'
                            when 'aborted' then 'abort' else 'cancel' end::milepost.verb,
               n.was, n.state, why
        from after n where n.state <> n.was
    )
    select array_agg(n.parent_id), array_agg(n.parent_task), array_agg(milepost.task_state_of(n.state))
    into parents, parent_tasks, parent_states
    from after n
    join milepost.batch_task t on t.batch_id = n.parent_id and t.task = n.parent_task
    where n.state <> n.was and t.child_id = n.id;
    if parents is not null then
        perform milepost.settle(parents, parent_tasks, parent_states);
    end if;
end
$$;

-- Makes the jobs of tasks under these ids, with these payloads or those of the definition. Answers the groups in which
-- some of them wait; the caller hands these over when it has written all else.
create or replace function milepost.make_task_jobs(
    batches uuid[], tasks int[], ids uuid[], payloads jsonb[] default null
) returns text[] language sql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
    with made as materialized (
        select i.id, i.batch_id, i.task, coalesce(i.payload, d.spec -> 'payload', '{}') as payload, d.kind, d.queue, d.group_key,
               d.priority, d.max_attempts, d.timeout_ms,
               case when d.group_key is null then 'pending' else 'blocked' end::milepost.job_state as state
        from unnest(batches, tasks, ids, payloads) i(batch_id, task, id, payload)
        join milepost.batch a on a.id = i.batch_id
        join milepost.dag_task d on d.version_id = a.version_id and d.task = coalesce(a.items_of, i.task)
    ),
    jobs as (
        insert into milepost.job (id, kind, queue, payload, group_key, priority, max_attempts, timeout_ms, created_at, batch_id, task)
        select id, kind, queue, payload, group_key, priority, max_attempts, timeout_ms, now(), batch_id, task from made
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
    select array(select group_key from made where group_key is not null)
$$;

-- Puts tasks into these states and does all that follows: counts their ends in their successors, decides these, makes the
-- jobs of those that can run, skips those that never can, adds up the batches. At most room successors are counted here;
-- what is more stands in batch_spread. whys: for the history. Answers how many tasks became due, and how many ends
-- are left to be spread.
--
-- from_positions: for ends that were begun to be counted before; then their states are as they were told (was), and room
-- successors from there on are counted.
create or replace function milepost.settle(
    batches uuid[], tasks int[], states milepost.task_state[], whys text[] default null, room int default 2000,
    was milepost.task_state[] default null, from_positions int[] default null, out due_made int, out spread_left int
) language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
declare
    page int := room;
    inline boolean[];
    log_batches uuid[] := '{}';
    log_was milepost.task_state[] := '{}';
    log_states milepost.task_state[] := '{}';
    log_numbers int[] := '{}';
    waiting_groups text[] := '{}';
    jobs_made int := 0;
    round record;
begin
    due_made := 0;
    spread_left := 0;
    perform milepost.join_settling(batches);
    while cardinality(tasks) > 0 loop
        -- Which ends are counted here. One that has others before it in the line stands behind them.
        select array_agg(e.n = 0 or from_positions is not null or (e.total <= room and not e.in_line) order by e.ord),
               room - coalesce(max(e.total) filter (where e.total <= room), 0)
        into inline, room
        from (
            select i.ord, coalesce(cardinality(d.successors), 0) as n,
                   sum(coalesce(cardinality(d.successors), 0)) over (order by i.ord) as total,
                   exists (select from milepost.batch_spread s where s.batch_id = i.batch_id and s.task = i.task) as in_line
            from unnest(batches, tasks) with ordinality i(batch_id, task, ord)
            join milepost.batch a on a.id = i.batch_id
            left join milepost.dag_task d on a.items_of is null and d.version_id = a.version_id and d.task = i.task
        ) e;

        perform from (
            select i.batch_id, i.task from unnest(batches, tasks) i(batch_id, task)
            union
            select i.batch_id, u.task
            from unnest(batches, tasks, inline, from_positions) i(batch_id, task, inline, place)
            join milepost.batch a on a.id = i.batch_id and a.items_of is null
            join milepost.dag_task d on d.version_id = a.version_id and d.task = i.task
            cross join lateral unnest(milepost.slice(d.successors, i.place, page)) u(task)
            where i.inline
        ) k
        join milepost.batch_task t on t.batch_id = k.batch_id and t.task = k.task
        order by t.batch_id, t.task
        for update of t;

        -- A statement of its own: it sees what those did for whom the locks waited.
        with told as materialized (
            select i.batch_id, i.task, i.state, coalesce(i.was, t.state) as was, i.was is null as own, i.why, i.inline,
                   i.place, t.job_id, t.child_id, a.version_id, a.items_of, a.generation
            from unnest(batches, tasks, states, was, whys, inline, from_positions)
                i(batch_id, task, state, was, why, inline, place)
            join milepost.batch a on a.id = i.batch_id
            join milepost.batch_task t on t.batch_id = i.batch_id and t.task = i.task
            where i.was is not null or t.state <> i.state
        ),
        spread as (
            insert into milepost.batch_spread (batch_id, task, was, state)
            select batch_id, task, e.was, state from told e
            where not inline and not (milepost.is_open(e.was) and milepost.is_open(e.state))
            returning 1
        ),
        logged as (
            -- What happens to a job stands in its own history.
            insert into milepost.batch_history (batch_id, generation, task, verb, from_state, to_state, note)
            select batch_id, generation, task,
                   case e.state when 'skipped' then 'skip' when 'canceled' then 'cancel' when 'failed' then 'fail' when 'aborted' then 'abort'
                                when 'succeeded' then case when child_id is null then 'mark' else 'succeed' end
                                when 'waiting' then 'rerun' else 'release' end::milepost.verb,
                   e.was, e.state, why
            from told e
            where own and (job_id is null or e.state = 'waiting')
        ),
        difference as materialized (
            select x.batch_id, x.task, max(x.own) as own, sum(x.open)::int as open, sum(x.succeeded)::int as succeeded,
                   sum(x.failed)::int as failed, sum(x.skipped)::int as skipped, sum(x.canceled)::int as canceled
            from (
                select e.batch_id, e.task, e.state as own, 0 as open, 0 as succeeded, 0 as failed, 0 as skipped, 0 as canceled
                from told e where e.own
                union all
                select e.batch_id, u.task, null,
                       milepost.is_open(e.state)::int - milepost.is_open(e.was)::int,
                       (e.state = 'succeeded')::int - (e.was = 'succeeded')::int, (e.state = 'failed')::int - (e.was = 'failed')::int,
                       (e.state = 'skipped')::int - (e.was = 'skipped')::int, (e.state = 'canceled')::int - (e.was = 'canceled')::int
                from told e
                join milepost.dag_task d on d.version_id = e.version_id and d.task = e.task
                cross join lateral unnest(milepost.slice(d.successors, e.place, page)) u(task)
                where e.inline and e.items_of is null and not (milepost.is_open(e.was) and milepost.is_open(e.state))
            ) x
            group by x.batch_id, x.task
        ),
        decided as materialized (
            select t.batch_id, t.task, t.state as was, x.own, x.open, x.succeeded, x.failed, x.skipped, x.canceled,
                   case when x.own is null and t.state = 'waiting' then
                       milepost.decide(k.rule, t.pre_cnt + x.open, t.succeeded + x.succeeded, t.failed + x.failed,
                                       t.skipped + x.skipped, t.canceled + x.canceled)
                   else 'wait' end as decision,
                   k.plain and a.stop is null as plain
            from difference x
            join milepost.batch a on a.id = x.batch_id
            join milepost.batch_task t on t.batch_id = x.batch_id and t.task = x.task
            left join milepost.dag_task k on a.items_of is null and k.version_id = a.version_id and k.task = x.task
        ),
        next as materialized (
            select d.*,
                   case when d.own is not null then d.own
                        when d.decision <> 'run' then d.was
                        when d.plain then 'active'
                        else 'due' end::milepost.task_state as state,
                   case when d.decision = 'run' and d.plain then milepost.uuid_v7() end as job_id
            from decided d
        ),
        moved as (
            update milepost.batch_task t
            set state = n.state, pre_cnt = t.pre_cnt + n.open, succeeded = t.succeeded + n.succeeded, failed = t.failed + n.failed,
                skipped = t.skipped + n.skipped, canceled = t.canceled + n.canceled, job_id = coalesce(n.job_id, t.job_id)
            from next n
            where t.batch_id = n.batch_id and t.task = n.task
        ),
        steps as materialized (
            select batch_id, n.was, n.state, count(*)::int as number from next n where n.was <> n.state group by 1, 2, 3
        )
        select
            array(select batch_id from next where decision = 'skip' order by batch_id, task) as skip_batches,
            array(select task from next where decision = 'skip' order by batch_id, task) as skip_tasks,
            array(select batch_id from steps order by batch_id, steps.was, steps.state) as step_batches,
            array(select steps.was from steps order by batch_id, steps.was, steps.state) as step_was,
            array(select steps.state from steps order by batch_id, steps.was, steps.state) as step_states,
            array(select number from steps order by batch_id, steps.was, steps.state) as step_numbers,
            array(select batch_id from next where job_id is not null order by batch_id, task) as job_batches,
            array(select task from next where job_id is not null order by batch_id, task) as job_tasks,
            array(select job_id from next where job_id is not null order by batch_id, task) as job_ids,
            (select count(*) from next where state = 'due' and next.was = 'waiting')::int as due,
            (select count(*) from spread)::int as spread
        into round;

        log_batches := log_batches || round.step_batches;
        log_was := log_was || round.step_was;
        log_states := log_states || round.step_states;
        log_numbers := log_numbers || round.step_numbers;
        if cardinality(round.job_ids) > 0 then
            jobs_made := jobs_made + cardinality(round.job_ids);
            waiting_groups := waiting_groups || milepost.make_task_jobs(round.job_batches, round.job_tasks, round.job_ids);
        end if;
        due_made := due_made + round.due;
        spread_left := spread_left + round.spread;
        -- What is skipped has ended.
        batches := round.skip_batches;
        tasks := round.skip_tasks;
        states := array_fill('skipped'::milepost.task_state, array[cardinality(tasks)]);
        whys := null;
        was := null;
        from_positions := null;
    end loop;
    if cardinality(log_batches) > 0 then
        perform milepost.count_moves(log_batches, log_was, log_states, log_numbers);
    end if;
    if cardinality(waiting_groups) > 0 then
        perform milepost.hand_over(waiting_groups, true);
    end if;
    if jobs_made > 0 then
        perform milepost.wake();
    end if;
end
$$;

-- Those from this position on, at most so many; all when there is no position.
create or replace function milepost.slice(numbers int[], place int, most int) returns int[] language sql immutable parallel safe as $$
    select case when place is null then numbers else numbers[place + 1 : place + most] end
$$;

-- Says to batches how jobs of theirs stand now. Jobs that are no tasks, or whose task has another job by now, say nothing.
create or replace function milepost.settle_jobs(jobs uuid[], out due_made int, out spread_left int) language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
declare
    batches uuid[];
    tasks int[];
    states milepost.task_state[];
begin
    select array_agg(t.batch_id), array_agg(t.task), array_agg(milepost.task_state_of(coalesce(l.state, e.state)))
    into batches, tasks, states
    from unnest(jobs) i(id)
    join milepost.job j on j.id = i.id
    join milepost.batch_task t on t.batch_id = j.batch_id and t.task = j.task and t.job_id = j.id
    left join milepost.live l on l.id = i.id
    left join milepost.ended e on e.id = i.id;
    if batches is null then
        due_made := 0;
        spread_left := 0;
        return;
    end if;
    select s.due_made, s.spread_left into due_made, spread_left from milepost.settle(batches, tasks, states) s;
end
$$;

-- The same, from plain SQL: what has to be worked out is left to workers, who are told.
create or replace function milepost.tell_batches(jobs uuid[]) returns void language plpgsql as $$
declare
    rest record;
begin
    select * into rest from milepost.settle_jobs(jobs);
    if rest.due_made + rest.spread_left > 0 then
        perform milepost.wake_to_advance();
    end if;
end
$$;

-- Tells workers that batches have something to be worked out. As costly as every NOTIFY; the library seldom needs it.
create or replace function milepost.wake_to_advance() returns void language plpgsql as $$
begin
    if current_setting('milepost.wake', true) is distinct from 'off' then
        notify milepost_wake, 'batch';
    end if;
end
$$;

-- Counts the next ends that had too many successors: at most so many. Answers how many successors.
create or replace function milepost.spread(most int default 2000, out counted int, out due_made int) language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
declare
    next milepost.batch_spread;
    successors int;
begin
    counted := 0;
    due_made := 0;
    select * into next from milepost.batch_spread s
    where not exists (select from milepost.batch_spread o where o.batch_id = s.batch_id and o.task = s.task and o.pos < s.pos)
    order by s.pos limit 1
    for update skip locked;
    if not found then
        return;
    end if;
    select cardinality(d.successors) into successors
    from milepost.batch a join milepost.dag_task d on d.version_id = a.version_id and d.task = next.task
    where a.id = next.batch_id;
    select s.due_made into due_made
    from milepost.settle(array[next.batch_id], array[next.task], array[next.state], null, most, array[next.was], array[next.position]) s;
    if next.position + most >= successors then
        delete from milepost.batch_spread where pos = next.pos;
    else
        update milepost.batch_spread set position = position + most where pos = next.pos;
    end if;
    counted := least(most, successors - next.position);
end
$$;
