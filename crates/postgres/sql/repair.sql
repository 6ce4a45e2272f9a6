-- Consistency checks of batches and their tasks, and their repair. Not public. Two sources are authoritative: the states of
-- jobs, and the edges between tasks; everything else is computed from them.

-- Returns the counts and states that batches should have according to their tasks, of these or of all. complete: all tasks
-- exist; retention has not begun to delete them.
create or replace function milepost.batch_facts(only_these uuid[] default null) returns table (
    id uuid, complete boolean, waiting int, due int, active int, failed int, aborted int, succeeded int, skipped int, canceled int,
    state milepost.batch_state
) language sql stable as $$
    select a.id,
           coalesce(t.tasks = case when a.items_of is null then v.tasks
                                   when jsonb_typeof(i.input) = 'array' then jsonb_array_length(i.input) end, false),
           t.waiting, t.due, t.active, t.failed, t.aborted, t.succeeded, t.skipped, t.canceled,
           milepost.batch_state_of(a.stop is not null, t.waiting, t.due,
                                   t.active + exists (select from milepost.batch_spread s where s.batch_id = a.id)::int,
                                   t.failed, t.aborted, t.canceled)
    from (
        select batch_id, count(*)::int as tasks, (count(*) filter (where state = 'waiting'))::int as waiting,
               (count(*) filter (where state = 'due'))::int as due, (count(*) filter (where state = 'active'))::int as active,
               (count(*) filter (where state = 'failed'))::int as failed, (count(*) filter (where state = 'aborted'))::int as aborted,
               (count(*) filter (where state = 'succeeded'))::int as succeeded, (count(*) filter (where state = 'skipped'))::int as skipped,
               (count(*) filter (where state = 'canceled'))::int as canceled
        from milepost.batch_task
        where only_these is null or batch_id = any (only_these)
        group by batch_id
    ) t
    join milepost.batch a on a.id = t.batch_id
    join milepost.dag_version v on v.id = a.version_id
    left join milepost.batch_input i on i.batch_id = a.id and a.items_of is not null
$$;

-- Returns tasks whose state differs from that of their job or child batch. A task whose job or batch was deleted can only be
-- failed. Jobs that are both live and ended, or neither, are ignored.
create or replace function milepost.task_states_off(only_these uuid[] default null) returns table (
    batch_id uuid, task int, state milepost.task_state, fact milepost.task_state, lost boolean, why text
) language sql stable as $$
    select d.batch_id, d.task, d.state, d.fact, d.lost, d.why
    from (
        select t.batch_id, t.task, t.state,
               case when t.child_id is not null then
                        case when c.id is null and t.state in ('active', 'aborted') then 'failed'::milepost.task_state
                             when f.complete then milepost.task_state_of(f.state) end
                    when l.id is not null and e.id is not null then null
                    when coalesce(l.state, e.state) is not null then milepost.task_state_of(coalesce(l.state, e.state))
                    when j.id is null and t.state in ('active', 'aborted')
                         and (t.job_id is not null or not exists (
                             select from milepost.batch_wait w where w.batch_id = t.batch_id and w.task = t.task)) then 'failed' end as fact,
               coalesce(j.id, l.id, e.id, c.id) is null as lost,
               case when t.child_id is not null and c.id is null then 'its batch is missing'
                    when t.child_id is not null then 'its batch is ' || f.state::text
                    when coalesce(l.state, e.state) is not null then 'its job is ' || coalesce(l.state, e.state)::text
                    when t.job_id is null then 'it has no job'
                    else 'its job is missing' end as why
        from milepost.batch_facts(only_these) a
        join milepost.batch_task t on t.batch_id = a.id
        left join milepost.job j on j.id = t.job_id
        left join milepost.live l on l.id = t.job_id
        left join milepost.ended e on e.id = t.job_id
        left join milepost.batch c on c.id = t.child_id
        left join milepost.batch_facts(array(
            select i.child_id from milepost.batch_task i
            where i.child_id is not null and (only_these is null or i.batch_id = any (only_these)))) f on f.id = t.child_id
        where a.complete
    ) d
    where d.fact <> d.state
$$;

-- Returns tasks whose counters differ from the states of their predecessors, or that wait although they need not. Leaves out
-- successors of a task whose end is still being counted.
create or replace function milepost.tallies_off(only_these uuid[] default null) returns table (
    batch_id uuid, task int, state milepost.task_state, was int[], pre_cnt int, succeeded int, failed int, skipped int, canceled int, decision text
) language sql stable as $$
    select d.batch_id, d.task, d.state, d.was, d.pre_cnt, d.succeeded, d.failed, d.skipped, d.canceled, d.decision
    from (
        select t.batch_id, t.task, t.state, array[t.pre_cnt, t.succeeded, t.failed, t.skipped, t.canceled] as was, x.*,
               case when t.state = 'waiting' then
                   milepost.decide(coalesce(k.rule, 'all_success'), x.pre_cnt, x.succeeded, x.failed, x.skipped, x.canceled)
               else 'wait' end as decision
        from milepost.batch_facts(only_these) f
        join milepost.batch a on a.id = f.id
        join milepost.batch_task t on t.batch_id = a.id
        left join milepost.dag_task k on k.version_id = a.version_id and k.task = t.task and a.items_of is null
        cross join lateral (
            select (count(*) filter (where milepost.is_open(p.state)))::int as pre_cnt,
                   (count(*) filter (where p.state = 'succeeded'))::int as succeeded, (count(*) filter (where p.state = 'failed'))::int as failed,
                   (count(*) filter (where p.state = 'skipped'))::int as skipped, (count(*) filter (where p.state = 'canceled'))::int as canceled
            from unnest(k.predecessors) u(task)
            cross join lateral milepost.batch_task_of(t.batch_id, u.task) p
        ) x
        where f.complete
          and not exists (select from milepost.batch_spread s where s.batch_id = t.batch_id and s.task = any (k.predecessors))
    ) d
    where d.was <> array[d.pre_cnt, d.succeeded, d.failed, d.skipped, d.canceled] or d.decision <> 'wait'
$$;

-- Returns batches whose counts, state or end differ from those of their tasks.
create or replace function milepost.batch_counts_off() returns table (
    batch_id uuid, was int[], counts int[], state milepost.batch_state, fact milepost.batch_state, has_end boolean
) language sql stable as $$
    select d.id, d.was, d.counts, d.state, d.fact, d.has_end
    from (
        select a.id, array[a.waiting, a.due, a.active, a.failed, a.aborted, a.succeeded, a.skipped, a.canceled] as was,
               array[f.waiting, f.due, f.active, f.failed, f.aborted, f.succeeded, f.skipped, f.canceled] as counts,
               a.state, f.state as fact, a.ended_at is not null as has_end
        from milepost.batch_facts() f
        join milepost.batch a on a.id = f.id
        where f.complete
    ) d
    where d.was <> d.counts or d.state <> d.fact or d.has_end <> (d.fact in ('done', 'canceled'))
$$;

-- Repairs a batch and applies the consequences: tasks that waited unnecessarily run, and the parent task gets the batch's
-- state. Returns its ID; nothing while ends of its tasks are still being counted, or tasks are missing.
create or replace function milepost.mend_batch(of_batch uuid) returns setof text language plpgsql as $$
declare
    runs int[];
    skips int[];
begin
    perform milepost.join_settling(array[of_batch], true);
    perform from milepost.batch_task t where t.batch_id = of_batch order by t.task for update;
    perform from milepost.batch b where b.id = of_batch for no key update;
    if exists (select from milepost.batch_spread s where s.batch_id = of_batch)
       or not exists (select from milepost.batch_facts(array[of_batch]) f where f.complete)
    then
        return;
    end if;
    with stood as (
        update milepost.batch_task t
        set state = o.fact, job_id = case when not o.lost then t.job_id end, child_id = case when not o.lost then t.child_id end
        from milepost.task_states_off(array[of_batch]) o
        where t.batch_id = o.batch_id and t.task = o.task
        returning t.task, t.generation, o.state as was, o.fact, o.why
    )
    insert into milepost.batch_history (batch_id, generation, task, verb, from_state, to_state, note)
    select of_batch, generation, task,
           case fact when 'skipped' then 'skip' when 'canceled' then 'cancel' when 'failed' then 'fail' when 'aborted' then 'abort'
                     when 'succeeded' then 'succeed' else 'release' end::milepost.verb,
           was, fact, 'a repair: ' || why
    from stood;
    update milepost.batch a
    set waiting = f.waiting, due = f.due, active = f.active, failed = f.failed, aborted = f.aborted, succeeded = f.succeeded,
        skipped = f.skipped, canceled = f.canceled
    from milepost.batch_facts(array[of_batch]) f
    where a.id = f.id;
    with counted as (
        update milepost.batch_task t
        set pre_cnt = o.pre_cnt, succeeded = o.succeeded, failed = o.failed, skipped = o.skipped, canceled = o.canceled,
            state = case when o.decision = 'run' then 'due' else t.state end
        from milepost.tallies_off(array[of_batch]) o
        where t.batch_id = o.batch_id and t.task = o.task
        returning t.task, o.decision
    )
    select array(select task from counted where decision = 'run' order by task),
           array(select task from counted where decision = 'skip' order by task)
    into runs, skips;
    perform milepost.count_moves(array[of_batch], array['waiting'::milepost.task_state], array['due'::milepost.task_state],
                                 array[cardinality(runs)], null, 'a repair');
    if cardinality(skips) > 0 then
        perform milepost.settle(
            array_fill(of_batch, array[cardinality(skips)]), skips, array_fill('skipped'::milepost.task_state, array[cardinality(skips)]),
            array_fill('a repair: its rule can no longer be met'::text, array[cardinality(skips)]));
    end if;
    perform milepost.wake_to_advance();
    return next of_batch::text;
end
$$;
