-- Batches: functions that apply states of jobs to their tasks, and count ends of tasks with too many successors for one transaction. Not public.

-- Applies the current states of these jobs to their tasks. Ignores jobs that are not tasks, and jobs whose task has another job now.
create or replace function milepost.settle_jobs(
    jobs uuid[], cause milepost.verb default null, why text default null, out due_made int, out spread_left int
) language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set join_collapse_limit = 1 set jit = off as $$
declare
    batches uuid[];
    tasks int[];
    states milepost.task_state[];
begin
    select array_agg(t.batch_id), array_agg(t.task), array_agg(milepost.task_state_of(coalesce(l.state, e.state)))
    into batches, tasks, states
    from unnest(jobs) i(id)
    join milepost.job j on j.id = i.id
    join lateral milepost.batch_task_of(j.batch_id, j.task) t on t.job_id = j.id
    left join milepost.live l on l.id = i.id
    left join milepost.ended e on e.id = i.id;
    if batches is null then
        due_made := 0;
        spread_left := 0;
        return;
    end if;
    select s.due_made, s.spread_left into due_made, spread_left
    from milepost.settle(batches, tasks, states, cause => cause, why => why) s;
end
$$;

-- The same, from plain SQL: workers are notified and evaluate expressions.
create or replace function milepost.tell_batches(jobs uuid[], cause milepost.verb default null, why text default null) returns void
language plpgsql as $$
declare
    rest record;
begin
    select * into rest from milepost.settle_jobs(jobs, cause, why);
    if rest.due_made + rest.spread_left > 0 then
        perform milepost.wake_to_advance();
    end if;
end
$$;

-- Notifies workers that batches have tasks to evaluate. Costs one NOTIFY; the library seldom needs it.
create or replace function milepost.wake_to_advance() returns void language plpgsql as $$
begin
    if current_setting('milepost.wake', true) is distinct from 'off' then
        notify milepost_wake, 'batch';
    end if;
end
$$;

-- Counts the next queued ends, of one batch if it is given (the caller has locked its family), up to `most` successors in total; of an end with more
-- successors, the next `most` of them. Returns the number of successors counted.
create or replace function milepost.spread(
    most int default 2000, of_batch uuid default null, out counted int, out due_made int
) language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set join_collapse_limit = 1 set jit = off as $$
declare
    ends record;
begin
    -- The oldest queued end of each task. In the order of locks, the advisory lock of the family precedes all rows; families that an operator has
    -- locked are skipped. A caller that gives a batch holds its lock already; trying to take it again would fail whenever another session waits for it.
    with first as materialized (
        select s.pos, s.batch_id, s.task, s.was, s.state, s.position
        from milepost.batch_spread s
        where (of_batch is null or s.batch_id = of_batch)
          and not exists (select from milepost.batch_spread o where o.batch_id = s.batch_id and o.task = s.task and o.pos < s.pos)
          and case
                  when of_batch is null then pg_try_advisory_xact_lock_shared(19797, milepost.settling_bucket(s.batch_id))
                  else true
              end
        order by s.pos limit 500
        for update skip locked
    ),
    measured as materialized (
        select f.*, a.depth, cardinality(d.successors) - f.position as number, row_number() over (order by f.pos) as ord
        from first f
        join milepost.batch a on a.id = f.batch_id
        cross join lateral milepost.dag_task_of(a.version_id, f.task) d
    ),
    chosen as (
        select * from (select m.*, sum(m.number) over (order by m.ord) as total from measured m) m
        -- Of one depth, because `settle` locks depth by depth.
        where (m.total <= most or m.ord = 1) and m.depth = (select d.depth from measured d where d.ord = 1)
    )
    select array_agg(pos order by ord) as positions, array_agg(batch_id order by ord) as batches, array_agg(task order by ord) as tasks,
           array_agg(was order by ord) as was, array_agg(state order by ord) as states, array_agg(position order by ord) as places,
           sum(number)::bigint as number
    into ends from chosen;
    counted := least(ends.number, most);
    if ends.number is null then
        counted := 0;
        due_made := 0;
        return;
    end if;
    -- Changed first: the state of a batch depends on whether ends are still queued.
    if ends.number > most then
        update milepost.batch_spread set position = position + most where pos = ends.positions[1];
    else
        delete from milepost.batch_spread where pos = any (ends.positions);
    end if;
    select s.due_made into due_made
    from milepost.settle(ends.batches, ends.tasks, ends.states, null, most, ends.was, ends.places) s;
end
$$;
