-- Reruns of tasks of batches. Public: rerun_tasks, rerun_failed. They join the caller's transaction. note, generation: as in
-- batch_operations.sql. SQLSTATEs: see batches.sql.

-- Reruns these tasks in a new generation: each is decided again when its predecessors have ended. Successors that are not in
-- the list stay as they are. version: moves the batch to this version of its DAG ('latest', or as in start_batch), to which
-- the task numbers then refer; null: the batch keeps its version. Returns the generation.
create or replace function milepost.rerun_tasks(
    batch uuid, tasks int[], note text default null, generation int default null, version text default null,
    input_checked boolean default false
) returns int language plpgsql as $$
begin
    return (select r.now_at from milepost.run_again(batch, tasks, note, generation, version, input_checked) r);
end
$$;

-- Reruns tasks that failed or were aborted. A task that is a list or a child batch continues: only its failed tasks are
-- rerun, at any depth, and results of succeeded tasks are kept. Returns the number of tasks and items that are rerun.
create or replace function milepost.rerun_failed(batch uuid, note text default null, generation int default null) returns bigint
language plpgsql as $$
begin
    -- Before the tasks are chosen, so that no other transaction changes them.
    perform milepost.take_batch(rerun_failed.batch, rerun_failed.generation);
    return (
        select r.changed
        from milepost.run_again(rerun_failed.batch, milepost.failed_tasks(rerun_failed.batch), rerun_failed.note, null, inside => true) r);
end
$$;

-- Returns the tasks of a batch that have failed or were aborted, without child batches that can continue.
create or replace function milepost.failed_tasks(of_batch uuid) returns int[] language sql stable as $$
    select array(
        select t.task
        from milepost.batch_task t
        where t.batch_id = of_batch and t.state in ('failed', 'aborted')
          and (t.child_id is null or (select c.ended_at is not null from milepost.batch c where c.id = t.child_id))
        order by t.task)
$$;

-- Reruns tasks. inside: also the failed tasks in child batches of other tasks. seen_batches, seen_generations: child batches
-- as the caller has seen them; nothing changes if one has been rerun since. Returns the number of tasks that are rerun, and
-- the generation.
create or replace function milepost.run_again(
    of_batch uuid, tasks int[], note text, seen_generation int, to_version text default null, input_checked boolean default false,
    inside boolean default false, seen_batches uuid[] default null, seen_generations int[] default null,
    out changed bigint, out now_at int
) language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set join_collapse_limit = 1 set jit = off as $$
#variable_conflict use_variable
declare
    a milepost.batch;
    was_version bigint;
    busy record;
    below record;
    below_batches int := 0;
    runs int[];
    skips int[];
    children uuid[];
    child uuid;
begin
    perform milepost.check_reason(note);
    a := milepost.take_batch(of_batch, seen_generation);
    was_version := a.version_id;
    if a.state in ('done', 'canceled') and exists (
        select from milepost.batch_task t where t.batch_id = a.parent_id and t.task = a.parent_task and t.child_id = a.id)
    then
        raise exception using errcode = 'MP012',
            message = format('batch %s has ended and is a task of batch %s: rerun that task', a.id, a.parent_id), detail = a.state::text;
    end if;
    if to_version is not null then
        a := milepost.change_version(a, to_version, input_checked);
    end if;
    perform milepost.check_tasks(a, tasks);
    -- The earlier ends of these tasks must be counted completely before they are taken back.
    while exists (select from milepost.batch_spread s where s.batch_id = a.id) loop
        perform milepost.spread(2147483647, a.id);
    end loop;
    perform from milepost.batch_task t where t.batch_id = a.id and t.task = any (tasks) order by t.task for update;
    select t.task, t.state into busy from milepost.batch_task t
    where t.batch_id = a.id and t.task = any (tasks) and t.state in ('due', 'active') order by t.task limit 1;
    if found then
        raise exception using errcode = 'MP012',
            message = format('task %s of batch %s is %s: it cannot be rerun', busy.task, a.id, busy.state), detail = busy.state::text;
    end if;
    tasks := array(select t.task from milepost.batch_task t
                   where t.batch_id = a.id and t.task = any (tasks) and t.state <> 'waiting' order by t.task);
    changed := cardinality(tasks);
    now_at := a.generation + 1;
    update milepost.batch b set generation = now_at where b.id = a.id;
    if inside then
        perform milepost.check_seen(seen_batches, seen_generations);
        -- First, so that the decisions below see the tasks of these child batches as active.
        select * into below from milepost.rerun_inside(a, tasks, note);
        changed := changed + below.changed;
        below_batches := below.batches;
    end if;
    if tasks = '{}' and a.version_id = was_version and below_batches = 0 then
        raise exception using errcode = 'MP014', message = format('there is nothing to rerun in batch %s', a.id);
    end if;
    -- The jobs of these tasks keep their final states; jobs that wait for an operator are canceled, since new ones replace
    -- them.
    perform milepost.stop_jobs(
        array(select t.job_id from milepost.batch_task t
              where t.batch_id = a.id and t.task = any (tasks) and t.state in ('failed', 'aborted') and t.job_id is not null),
        'cancel', format('its task is rerun in generation %s', now_at), 0);
    perform milepost.forget_waits(a, tasks);
    children := array(select t.child_id from milepost.batch_task t join milepost.batch c on c.id = t.child_id and c.ended_at is null
                      where t.batch_id = a.id and t.task = any (tasks) order by t.task);
    perform milepost.settle(
        array_fill(a.id, array[cardinality(tasks)]), tasks, array_fill('waiting'::milepost.task_state, array[cardinality(tasks)]),
        array_fill(note, array[cardinality(tasks)]), 2147483647, cause => 'rerun', why => note);
    with decided as materialized (
        select t.task, milepost.decide(d.rule, t.pre_cnt, t.succeeded, t.failed, t.skipped, t.canceled) as decision
        from milepost.batch_task t
        left join milepost.dag_task d on a.items_of is null and d.version_id = a.version_id and d.task = t.task
        where t.batch_id = a.id
          -- After a change of the version, all waiting tasks are decided again.
          and (t.task = any (tasks) or a.version_id <> was_version and t.state = 'waiting')
    ),
    anew as (
        update milepost.batch_task t
        set generation = now_at, job_id = null, child_id = null
        where t.batch_id = a.id and t.task = any (tasks)
    )
    select array(select task from decided where decision = 'run' or a.items_of is not null order by task),
           array(select task from decided where decision = 'skip' and a.items_of is null order by task)
    into runs, skips;
    -- After the tasks no longer refer to these batches, so that their cancellation does not reach the tasks.
    foreach child in array children loop
        perform milepost.cancel_batch(child, format('its task is rerun in generation %s', now_at), 0);
    end loop;
    update milepost.batch_task t set state = 'due' where t.batch_id = a.id and t.task = any (runs);
    perform milepost.count_moves(array[a.id], array['waiting'::milepost.task_state], array['due'::milepost.task_state], array[cardinality(runs)], 'rerun', note);
    if cardinality(skips) > 0 then
        perform milepost.settle(
            array_fill(a.id, array[cardinality(skips)]), skips, array_fill('skipped'::milepost.task_state, array[cardinality(skips)]));
    end if;
    if inside then
        perform milepost.note_rerun(a.id, now_at, note);
    end if;
    perform milepost.wake_to_advance();
end
$$;

-- Adds a rerun to the history of a batch, unless a change of its state has added it.
create or replace function milepost.note_rerun(of_batch uuid, at_generation int, why text) returns void language plpgsql as $$
begin
    if not exists (select from milepost.batch_history h
                   where h.batch_id = of_batch and h.generation = at_generation and h.task is null and h.key is null and h.verb = 'rerun')
    then
        insert into milepost.batch_history (batch_id, generation, verb, from_state, to_state, note)
        select b.id, b.generation, 'rerun', b.state, b.state, why from milepost.batch b where b.id = of_batch;
    end if;
end
$$;

-- Fails if one of these batches has another generation now.
create or replace function milepost.check_seen(batches uuid[], generations int[]) returns void language plpgsql as $$
declare
    overtaken uuid;
begin
    select b.id into overtaken
    from unnest(batches, generations) i(id, generation)
    join milepost.batch b on b.id = i.id
    where b.generation <> i.generation order by b.id limit 1;
    if found then
        raise exception using errcode = 'MP013', message = format('batch %s was rerun in the meantime; check its state and try again', overtaken);
    end if;
end
$$;

-- Reruns failed tasks in the child batches of this batch, except those of the tasks in `but`. Returns the number of tasks
-- that are rerun, and the number of batches that continue.
create or replace function milepost.rerun_inside(a milepost.batch, but int[], why text, out changed bigint, out batches int)
language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set join_collapse_limit = 1 set jit = off as $$
declare
    child record;
    below record;
begin
    changed := 0;
    batches := 0;
    if a.items_of is not null then
        return;
    end if;
    for child in
        select c.id, t.state <> 'active' and c.stop is not null and a.stop is null as resumes
        from milepost.batch_task t
        join milepost.batch c on c.id = t.child_id
        where t.batch_id = a.id and t.state in ('active', 'failed', 'aborted') and t.task <> all (but) and c.ended_at is null
        order by t.task
    loop
        select * into below from milepost.rerun_failed_in(child.id, child.resumes, why);
        changed := changed + below.changed;
        batches := batches + below.batches;
    end loop;
end
$$;

-- Reruns failed tasks in a child batch and in its own child batches. resumes: the batch was stopped, and continues.
create or replace function milepost.rerun_failed_in(of_batch uuid, resumes boolean, why text, out changed bigint, out batches int)
language plpgsql as $$
declare
    a milepost.batch := milepost.take_batch(of_batch, null);
    failed int[];
    own record;
begin
    if resumes then
        update milepost.batch b set stop = null where b.id = a.id returning * into a;
    end if;
    select i.changed, i.batches into changed, batches from milepost.rerun_inside(a, '{}', why) i;
    failed := milepost.failed_tasks(a.id);
    if failed <> '{}' then
        select * into own from milepost.run_again(a.id, failed, why, null);
        changed := changed + own.changed;
    elsif resumes or batches > 0 then
        update milepost.batch b set generation = a.generation + 1 where b.id = a.id;
        perform milepost.count_moves(
            array[a.id], array['waiting'::milepost.task_state], array['waiting'::milepost.task_state], array[0], 'rerun', why);
        perform milepost.note_rerun(a.id, a.generation + 1, why);
    else
        return;
    end if;
    batches := batches + 1;
end
$$;
