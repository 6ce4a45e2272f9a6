-- Batches: change to another version of the DAG, in which a task is identified by its key. Not public: rerun_tasks calls it.

-- Moves a batch to this version, if it has another one. Tasks that the version does not contain are dropped, new ones wait,
-- and the counters of all tasks are recomputed from the states of their predecessors. Decides no tasks, and empties the
-- queue of uncounted ends. input_checked: as in start_batch. The caller has excluded other transactions from settling the
-- batch's ends. Returns the batch after the change.
create or replace function milepost.change_version(a milepost.batch, version text, input_checked boolean) returns milepost.batch
language plpgsql as $$
declare
    to_version milepost.dag_version;
    busy record;
begin
    if a.items_of is not null then
        raise exception using errcode = 'MP012', detail = 'list',
            message = format('batch %s runs the items of a list and has no separate version: rerun its task in batch %s', a.id, a.parent_id);
    end if;
    to_version := milepost.find_version(a.dag, nullif(version, 'latest'));
    if to_version.id = a.version_id then
        return a;
    end if;
    if to_version.input_schema is not null and not coalesce(input_checked, false) then
        raise exception using errcode = 'MP011',
            message = format('version %s of the DAG %s has a schema for its input, which cannot be checked in SQL', to_version.number, a.dag),
            detail = 'schema', hint = 'rerun it with the library, the API or `milepost batch rerun`; or check the input and pass input_checked => true';
    end if;
    perform from milepost.batch_task t where t.batch_id = a.id order by t.task for update;
    -- In a stopped batch, due tasks have not become jobs yet, and are decided again.
    select t.task, t.state into busy from milepost.batch_task t
    where t.batch_id = a.id and (t.state = 'active' or t.state = 'due' and a.stop is null) order by t.task limit 1;
    if found then
        raise exception using errcode = 'MP012',
            message = format('task %s of batch %s is %s: it cannot be moved to another version', busy.task, a.id, busy.state),
            detail = busy.state::text;
    end if;
    delete from milepost.batch_spread s where s.batch_id = a.id;
    perform milepost.renumber_batch(a, to_version);
    update milepost.batch b
    set waiting = f.waiting, due = f.due, active = f.active, failed = f.failed, aborted = f.aborted, succeeded = f.succeeded,
        skipped = f.skipped, canceled = f.canceled
    from milepost.batch_facts(array[a.id]) f
    where b.id = f.id;
    update milepost.batch_task t
    set pre_cnt = o.pre_cnt, succeeded = o.succeeded, failed = o.failed, skipped = o.skipped, canceled = o.canceled
    from milepost.tallies_off(array[a.id]) o
    where t.batch_id = o.batch_id and t.task = o.task;
    select * into strict a from milepost.batch b where b.id = a.id;
    return a;
end
$$;

-- Gives the tasks of a batch the numbers that their keys have in this version, in all tables, and drops the tasks that it
-- does not contain.
create or replace function milepost.renumber_batch(a milepost.batch, to_version milepost.dag_version) returns void language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set join_collapse_limit = 1 set jit = off as $$
declare
    again int[];
    -- New numbers by old number, from 1; -1: dropped.
    numbers int[] := array(
        select coalesce(n.task, -1)
        from milepost.dag_task o
        left join milepost.dag_task n on n.version_id = to_version.id and n.key = o.key
        where o.version_id = a.version_id order by o.task);
    was_number int := (select v.number from milepost.dag_version v where v.id = a.version_id);
    why text := format('version %s does not have this task', to_version.number);
    jobs uuid[];
    children uuid[];
    child uuid;
begin
    again := milepost.change_waits(a, to_version);
    -- Includes jobs of earlier generations, which are found in the history.
    update milepost.job j
    set task = nullif(numbers[j.task + 1], -1)
    where j.batch_id = a.id and numbers[j.task + 1] <> j.task
      and j.id = any (array(
          select t.job_id from milepost.batch_task t where t.batch_id = a.id and t.job_id is not null
          union all
          select h.job_id from milepost.batch_history h where h.batch_id = a.id and h.job_id is not null));
    update milepost.batch c set parent_task = nullif(numbers[c.parent_task + 1], -1)
    where c.parent_id = a.id and c.parent_task is not null;
    update milepost.batch_history h set task = k.task, key = k.key
    from (
        select e.pos, n.task, case when n.task is null then coalesce(o.key, e.key) end as key
        from milepost.batch_history e
        left join milepost.dag_task o on o.version_id = a.version_id and o.task = e.task
        left join milepost.dag_task n on n.version_id = to_version.id and n.key = coalesce(o.key, e.key)
        where e.batch_id = a.id and coalesce(o.key, e.key) is not null
    ) k
    where h.pos = k.pos and (h.task, h.key) is distinct from (k.task, k.key);

    with gone as (
        delete from milepost.batch_task t where t.batch_id = a.id and numbers[t.task + 1] = -1 returning t.*
    ),
    told as (
        insert into milepost.batch_history (batch_id, generation, key, job_id, verb, from_state, to_state, note)
        select a.id, a.generation + 1, d.key, g.job_id, case when i.ended then 'rerun' else 'cancel' end::milepost.verb, g.state,
               case when i.ended then g.state else 'canceled' end, why
        from gone g
        join milepost.dag_task d on d.version_id = a.version_id and d.task = g.task
        cross join lateral (select g.state in ('succeeded', 'skipped', 'canceled') as ended) i
        order by g.task
    )
    select array_agg(g.job_id order by g.job_id) filter (where g.state in ('failed', 'aborted') and g.job_id is not null),
           array_agg(g.child_id order by g.task) filter (where g.child_id is not null)
    into jobs, children from gone g;

    delete from milepost.batch_wait w where w.batch_id = a.id and (numbers[w.task + 1] = -1 or w.task = any (again));
    update milepost.batch_wait w set task = -1 - w.task where w.batch_id = a.id;
    update milepost.batch_wait w set task = numbers[-w.task] where w.batch_id = a.id;
    -- First to negative numbers, since the new number of one task is the old number of another.
    update milepost.batch_task t set task = -1 - t.task where t.batch_id = a.id;
    update milepost.batch_task t
    set task = numbers[-t.task],
        state = case when t.state = 'due' or -1 - t.task = any (again) then 'waiting' else t.state end,
        generation = case when -1 - t.task = any (again) then a.generation + 1 else t.generation end
    where t.batch_id = a.id;
    insert into milepost.batch_task (batch_id, task, generation, pre_cnt, state)
    select a.id, n.task, a.generation + 1, n.pre_cnt, 'waiting'
    from milepost.dag_task n
    where n.version_id = to_version.id
      and not exists (select from milepost.batch_task t where t.batch_id = a.id and t.task = n.task);
    update milepost.batch b set version_id = to_version.id where b.id = a.id;
    insert into milepost.batch_history (batch_id, generation, verb, from_state, to_state, note)
    values (a.id, a.generation + 1, 'rerun', a.state, a.state,
            format('continues with version %s of its DAG instead of version %s', to_version.number, was_number));

    perform milepost.stop_jobs(jobs, 'cancel', why, 0);
    foreach child in array coalesce(children, '{}') loop
        if exists (select from milepost.batch c where c.id = child and c.ended_at is null) then
            perform milepost.cancel_batch(child, why, 0);
        end if;
    end loop;
end
$$;

-- Discards the signals of a batch that this version uses differently: for another task, or with other rules for the payload. Returns the tasks that
-- wait, stopped, and whose wait is another one in the version. They wait again, as it says.
create or replace function milepost.change_waits(a milepost.batch, to_version milepost.dag_version) returns int[] language plpgsql as $$
declare
    again int[] := array(
        select w.task
        from milepost.batch_wait w
        join milepost.batch_task t on t.batch_id = w.batch_id and t.task = w.task
        join milepost.dag_task o on o.version_id = a.version_id and o.task = w.task
        join milepost.dag_task n on n.version_id = to_version.id and n.key = o.key
        where w.batch_id = a.id and t.state = 'aborted' and t.job_id is null and t.child_id is null
          and n.spec -> 'wait' is distinct from o.spec -> 'wait'
        order by w.task);
begin
    update milepost.batch_signal s set state = 'unused', is_new = null
    where s.batch_id = a.id and s.state = 'kept' and not exists (
        select from milepost.dag_task o
        join milepost.dag_task n on n.version_id = to_version.id and n.key = o.key
        where o.version_id = a.version_id and o.spec ? 'wait' and o.spec #>> '{wait,signal}' = s.name
          and n.spec #> '{wait,signal}' = o.spec #> '{wait,signal}'
          and n.spec #> '{wait,choices}' is not distinct from o.spec #> '{wait,choices}'
          and n.spec #> '{wait,schema}' is not distinct from o.spec #> '{wait,schema}');
    -- Before the numbers in the history change.
    insert into milepost.batch_history (batch_id, generation, task, verb, from_state, to_state, note)
    select a.id, a.generation + 1, i.task, 'rerun', 'aborted', 'waiting', format('version %s has another wait for this task', to_version.number)
    from unnest(again) i(task);
    return again;
end
$$;
