-- Public: start_batch, abort_batch, resume_batch, cancel_batch, cancel_tasks, mark_task, rerun_tasks. They join the caller's
-- transaction. What follows from ends is in settle.sql.
-- SQLSTATEs: MP010 no such DAG, version, batch or task; MP011 the input cannot be taken; MP012 the state of the batch or of a
-- task does not allow it; MP013 the batch is at another generation.

-- Starts a batch: it and all its tasks; those that wait for none can run when the caller commits. key: at most one batch of the DAG
-- ever has it; the one that has it is answered with duplicate = true and nothing is changed. version: its 64 digits, or as many of the
-- first as tell it from others; null: the latest. input_checked: the caller has held the input against the DAG's schema.
create or replace function milepost.start_batch(
    dag text, key text default null, input jsonb default '{}', version text default null, input_checked boolean default false,
    id uuid default null, nominal_at timestamptz default null
) returns table (batch_id uuid, duplicate boolean) language plpgsql as $$
#variable_conflict use_variable
declare
    chosen milepost.dag_version;
    made record;
begin
    if octet_length(key) not between 1 and 1000 or key ~ '[[:cntrl:]]' then
        raise exception using errcode = 'MP011', message = 'the key of a batch must have 1 to 1000 bytes and no control characters';
    end if;
    if octet_length(input::text) > 1048576 then
        raise exception using errcode = 'MP011', message = 'the input has more than 1048576 bytes';
    end if;
    chosen := milepost.find_version(dag, version);
    if chosen.input_schema is not null and not coalesce(input_checked, false) then
        raise exception using errcode = 'MP011',
            message = format('the DAG %s has a schema for its input, which cannot be checked in SQL', dag),
            hint = 'start it by the library, the API or `milepost batch start`, or pass input_checked => true when it was checked';
    end if;
    select * into made from milepost.make_batch(
        coalesce(id, milepost.uuid_v7()), dag, chosen.id, key, coalesce(input, '{}'), nominal_at, null, null, null, 1);
    if made.due_made > 0 then
        perform milepost.wake_to_advance();
    end if;
    return query select made.batch_id, made.duplicate;
end
$$;

-- A version of a DAG by its digits, or the latest.
create or replace function milepost.find_version(dag text, version text) returns milepost.dag_version language plpgsql stable as $$
#variable_conflict use_variable
declare
    found_version milepost.dag_version;
begin
    if version is null then
        select v.* into found_version from milepost.dag g join milepost.dag_version v on v.id = g.latest where g.name = dag;
        if not found then
            raise exception using errcode = 'MP010', message = format('there is no DAG %L', dag), detail = 'dag',
                hint = '`milepost batch define FILE` stores one';
        end if;
    else
        select v.* into found_version from milepost.dag_version v
        where v.name = dag and starts_with(v.version, version) order by v.version = version desc, v.number desc limit 1;
        if not found then
            raise exception using errcode = 'MP010', message = format('the DAG %L has no version %s', dag, version), detail = 'version';
        end if;
    end if;
    return found_version;
end
$$;

-- Makes a batch and its tasks. items_of: its tasks are the items of the list that is its input.
create or replace function milepost.make_batch(
    new_id uuid, of_dag text, of_version bigint, new_key text, new_input jsonb, nominal timestamptz, parent uuid, parent_number int,
    of_items int, at_depth int, out batch_id uuid, out duplicate boolean, out due_made int
) language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set join_collapse_limit = 1 set jit = off as $$
#variable_conflict use_column
declare
    waiting_groups text[];
    plain int;
begin
    insert into milepost.batch (id, dag, version_id, key, state, waiting, due, active, failed, aborted, succeeded, skipped, canceled,
                                parent_id, parent_task, items_of, depth, nominal_at)
    values (new_id, of_dag, of_version, new_key, 'running', 0, 0, 0, 0, 0, 0, 0, 0, parent, parent_number, of_items, at_depth, nominal)
    on conflict do nothing;
    if not found then
        due_made := 0;
        duplicate := true;
        -- Its own statement: it sees the row for which the insert waited.
        select b.id into batch_id from milepost.batch b where b.dag = of_dag and b.key = new_key;
        if not found then
            select b.id into strict batch_id from milepost.batch b where b.id = new_id;
        end if;
        return;
    end if;
    insert into milepost.batch_input (batch_id, input) values (new_id, new_input);
    batch_id := new_id;
    duplicate := false;
    if of_items is not null then
        insert into milepost.batch_task (batch_id, task, pre_cnt, state)
        select new_id, n, 0, 'due' from generate_series(0, jsonb_array_length(new_input) - 1) n;
        get diagnostics due_made = row_count;
        update milepost.batch set due = due_made where id = new_id;
    else
        insert into milepost.batch_task (batch_id, task, pre_cnt, state, job_id)
        select new_id, d.task, d.pre_cnt,
               case when d.pre_cnt > 0 then 'waiting' when d.plain then 'active' else 'due' end::milepost.task_state,
               case when d.pre_cnt = 0 and d.plain then milepost.uuid_v7() end
        from milepost.dag_task d
        where d.version_id = of_version;
        update milepost.batch b
        set waiting = n.waiting, due = n.due, active = n.active
        from (select count(*) filter (where state = 'waiting') as waiting, count(*) filter (where state = 'due') as due,
                     count(*) filter (where state = 'active') as active
              from milepost.batch_task where batch_id = new_id) n
        where b.id = new_id
        returning b.due, b.active into due_made, plain;
    end if;
    insert into milepost.batch_history (batch_id, generation, verb, to_state) values (new_id, 1, 'create', 'running');
    if plain > 0 then
        select milepost.make_task_jobs(
            array_fill(new_id, array[plain]), array_agg(t.task order by t.task), array_agg(t.job_id order by t.task))
        into waiting_groups
        from milepost.batch_task t where t.batch_id = new_id and t.state = 'active';
        if cardinality(waiting_groups) > 0 then
            perform milepost.hand_over(waiting_groups, true);
        end if;
        perform milepost.wake();
    end if;
end
$$;

-- Makes the jobs of due tasks, with these payloads. Tasks that are no longer due are passed over.
create or replace function milepost.release_tasks(batches uuid[], tasks int[], payloads jsonb[]) returns void language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set join_collapse_limit = 1 set jit = off as $$
declare
    made record;
    waiting_groups text[];
begin
    with given as materialized (
        select i.batch_id, i.task, i.payload, milepost.uuid_v7() as job_id
        from unnest(batches, tasks, payloads) i(batch_id, task, payload)
        cross join lateral milepost.batch_task_of(i.batch_id, i.task) t
        where t.state = 'due'
    ),
    moved as (
        update milepost.batch_task t set state = 'active', job_id = g.job_id
        from given g where t.batch_id = g.batch_id and t.task = g.task
    )
    select array_agg(batch_id order by batch_id, task) as batches, array_agg(task order by batch_id, task) as tasks,
           array_agg(job_id order by batch_id, task) as ids, array_agg(payload order by batch_id, task) as payloads
    into made from given;
    if made.ids is null then
        return;
    end if;
    waiting_groups := milepost.make_task_jobs(made.batches, made.tasks, made.ids, made.payloads);
    perform milepost.count_moves(made.batches, array_fill('due'::milepost.task_state, array[cardinality(made.ids)]),
                                 array_fill('active'::milepost.task_state, array[cardinality(made.ids)]),
                                 array_fill(1, array[cardinality(made.ids)]));
    if cardinality(waiting_groups) > 0 then
        perform milepost.hand_over(waiting_groups, true);
    end if;
    perform milepost.wake();
end
$$;

-- Makes a due task what is no plain job: a run of a bulk job, a batch of a DAG (inner), or one over a list (items). Answers
-- why it cannot be; null: it is.
create or replace function milepost.release_other(of_batch uuid, of_task int, what text, name text, payload jsonb) returns text
language plpgsql as $$
declare
    a milepost.batch;
    made record;
    inner_version milepost.dag_version;
    bulk_job uuid;
begin
    select * into strict a from milepost.batch where id = of_batch;
    perform from milepost.batch_task where batch_id = of_batch and task = of_task and state = 'due';
    if not found then
        return null;
    end if;
    if what = 'bulk' then
        begin
            select b.job_id into bulk_job from milepost.start_bulk(name, payload) b;
        exception
            when sqlstate 'MP007' then
                return format('there is no bulk job "%s"; `milepost bulk list` shows those that there are', name);
            when sqlstate 'MP001' or sqlstate 'MP008' then
                return sqlerrm;
        end;
        -- Of a row that nobody has seen.
        update milepost.job set batch_id = of_batch, task = of_task where id = bulk_job;
        update milepost.batch_task set state = 'active', job_id = bulk_job where batch_id = of_batch and task = of_task;
    else
        if a.depth >= 8 then
            return 'batches would lie more than 8 deep in one another';
        end if;
        if what = 'items' then
            if jsonb_array_length(payload) = 0 then
                perform milepost.settle(array[of_batch], array[of_task], array['succeeded'::milepost.task_state], array['the list is empty']);
                return null;
            end if;
            select * into made from milepost.make_batch(
                milepost.uuid_v7(), a.dag, a.version_id, null, payload, a.nominal_at, of_batch, of_task, of_task, a.depth + 1);
        else
            begin
                inner_version := milepost.find_version(name, null);
            exception when sqlstate 'MP010' then
                return format('there is no DAG "%s"; `milepost batch list --dags` shows those that there are', name);
            end;
            select * into made from milepost.make_batch(
                milepost.uuid_v7(), name, inner_version.id, null, payload, a.nominal_at, of_batch, of_task, null, a.depth + 1);
        end if;
        update milepost.batch_task set state = 'active', child_id = made.batch_id where batch_id = of_batch and task = of_task;
        if made.due_made > 0 then
            perform milepost.wake_to_advance();
        end if;
    end if;
    perform milepost.count_moves(array[of_batch], array['due'::milepost.task_state], array['active'::milepost.task_state], array[1]);
    return null;
end
$$;

-- What a batch leaves for those who come after the task that it is: of a list the results of its items in their order, of a
-- DAG the results of the tasks that nobody waits for, by key.
create or replace function milepost.batch_output(of_batch uuid) returns jsonb language sql stable as $$
    select case when a.items_of is not null then
        (select jsonb_agg(e.result order by t.task)
         from milepost.batch_task t left join milepost.ended e on e.id = t.job_id where t.batch_id = a.id)
    else
        (select jsonb_object_agg(d.key, case when t.child_id is null then e.result else milepost.batch_output(t.child_id) end)
         from milepost.dag_task d
         join milepost.batch_task t on t.batch_id = a.id and t.task = d.task
         left join milepost.ended e on e.id = t.job_id
         where d.version_id = a.version_id and d.successors = '{}')
    end
    from milepost.batch a where a.id = of_batch
$$;

-- How large that is, as text.
create or replace function milepost.batch_output_bytes(of_batch uuid) returns bigint language sql stable as $$
    select coalesce(sum(case when t.child_id is null then octet_length(e.result::text)::bigint else milepost.batch_output_bytes(t.child_id) end), 0)::bigint
    from milepost.batch_task t left join milepost.ended e on e.id = t.job_id
    where t.batch_id = of_batch
$$;

-- The batch that an operator is about to change; nobody settles its ends meanwhile.
create or replace function milepost.take_batch(of_batch uuid, seen_generation int) returns milepost.batch language plpgsql as $$
declare
    a milepost.batch;
begin
    perform milepost.join_settling(array[of_batch], true);
    select * into a from milepost.batch where id = of_batch for no key update;
    if not found then
        raise exception using errcode = 'MP010', message = format('there is no batch %s', of_batch), detail = 'batch';
    end if;
    if a.generation <> seen_generation then
        raise exception using errcode = 'MP013', message = format('batch %s was rerun meanwhile; look at it again', of_batch);
    end if;
    return a;
end
$$;

-- Notes in the history of a batch what an operator did, whose state may depend on that alone: a is what it was before.
create or replace function milepost.note_operation(a milepost.batch, what milepost.verb, why text) returns void language plpgsql as $$
begin
    perform milepost.count_moves(array[a.id], array['waiting'::milepost.task_state], array['waiting'::milepost.task_state], array[0], what, why);
    if not exists (select from milepost.batch b where b.id = a.id and b.state <> a.state) then
        insert into milepost.batch_history (batch_id, generation, verb, from_state, to_state, note)
        select b.id, b.generation, what, b.state, b.state, why from milepost.batch b where b.id = a.id;
    end if;
end
$$;

-- Stops jobs: those that wait at once, by verb (cancel or abort), those that run when they have had grace_ms to stop by
-- themselves. Answers how many were stopped, and how many asked to.
create or replace function milepost.stop_jobs(
    jobs uuid[], what milepost.verb, note text, grace_ms bigint, out stopped int, out asked int
) language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set join_collapse_limit = 1 set jit = off as $$
#variable_conflict use_column
declare
    state_after milepost.job_state := case what when 'abort' then 'aborted' else 'canceled' end;
    ended uuid[];
begin
    perform from milepost.live l where l.id = any (jobs) order by l.id for update;
    with running as (
        update milepost.live l
        set stop_verb = what, stop_note = stop_jobs.note, stop_at = least(l.stop_at, now() + grace_ms * interval '1 millisecond')
        where l.id = any (jobs) and l.state = 'running' and grace_ms > 0
        returning 1
    )
    select count(*)::int into asked from running;
    with waiting as materialized (
        select l.* from milepost.live l
        join milepost.transition r on r.from_state = l.state and r.verb = what
        where l.id = any (jobs) and (l.state <> 'running' or grace_ms = 0)
    ),
    gone as (
        delete from milepost.live l using waiting w where l.id = w.id and what = 'cancel'
    ),
    kept as (
        insert into milepost.ended (id, ended_at, started_at, token, attempt, max_attempts, state)
        select id, now(), started_at, token, attempt, max_attempts, state_after from waiting where what = 'cancel'
    ),
    rested as (
        update milepost.live l
        set state = state_after, ready_at = null, due_at = null, timed = null, failed_at = null, worker_id = null, claim_id = null,
            stop_verb = null, stop_at = null, stop_note = null
        from waiting w where l.id = w.id and what = 'abort'
    ),
    logged as (
        insert into milepost.history (job_id, token, attempt, worker_id, verb, from_state, to_state, note)
        select id, token, attempt, worker_id, what, state, state_after, stop_jobs.note from waiting
    )
    select array_agg(id) into ended from waiting;
    stopped := coalesce(cardinality(ended), 0);
    if stopped > 0 then
        perform milepost.free_groups(ended);
    end if;
    if asked > 0 then
        perform milepost.wake_to_stop();
    end if;
end
$$;

-- Stops a batch: nothing of it starts any more, what waits is aborted, what runs is asked to stop. Answers how many tasks were
-- stopped, and how many asked to.
create or replace function milepost.abort_batch(
    batch uuid, note text default null, grace_ms bigint default 10000, generation int default null, out changed bigint, out stopping bigint
) language plpgsql as $$
#variable_conflict use_column
declare
    a milepost.batch := milepost.take_batch(abort_batch.batch, abort_batch.generation);
    jobs uuid[];
    child uuid;
    inside record;
begin
    if a.state not in ('running', 'failed') or a.stop is not null then
        raise exception using errcode = 'MP012', message = format('batch %s is %s: it cannot be aborted', a.id, a.state), detail = a.state::text;
    end if;
    update milepost.batch set stop = 'abort' where id = a.id;
    jobs := array(select t.job_id from milepost.batch_task t where t.batch_id = a.id and t.state = 'active' and t.job_id is not null);
    select s.stopped, s.asked into changed, stopping from milepost.stop_jobs(jobs, 'abort', abort_batch.note, grace_ms) s;
    for child in
        select c.id from milepost.batch_task t join milepost.batch c on c.id = t.child_id
        where t.batch_id = a.id and t.state = 'active' and c.stop is null and c.state in ('running', 'failed') order by t.task
    loop
        select * into inside from milepost.abort_batch(child, abort_batch.note, grace_ms);
        changed := changed + inside.changed;
        stopping := stopping + inside.stopping;
    end loop;
    perform milepost.settle_jobs(jobs, 'abort', abort_batch.note);
    perform milepost.note_operation(a, 'abort', abort_batch.note);
end
$$;

-- Lets a stopped batch go on: what was aborted waits for a worker again, what was held back starts.
create or replace function milepost.resume_batch(
    batch uuid, note text default null, generation int default null, out changed bigint
) language plpgsql as $$
#variable_conflict use_column
declare
    a milepost.batch := milepost.take_batch(resume_batch.batch, resume_batch.generation);
    jobs uuid[];
    child uuid;
    job uuid;
begin
    if a.stop is null and a.aborted = 0 then
        raise exception using errcode = 'MP012', message = format('batch %s is %s: it cannot be resumed', a.id, a.state), detail = a.state::text;
    end if;
    update milepost.batch set stop = null where id = a.id;
    -- Those that were asked to stop and have not are not asked any more.
    update milepost.live l set stop_verb = null, stop_at = null, stop_note = null
    where l.id in (select t.job_id from milepost.batch_task t where t.batch_id = a.id and t.state = 'active') and l.stop_verb = 'abort';
    jobs := array(select t.job_id from milepost.batch_task t where t.batch_id = a.id and t.state = 'aborted' and t.job_id is not null order by t.job_id);
    changed := cardinality(jobs);
    foreach job in array jobs loop
        perform milepost.change_job(job, 'resume', resume_batch.note);
    end loop;
    for child in
        select c.id from milepost.batch_task t join milepost.batch c on c.id = t.child_id
        where t.batch_id = a.id and (c.stop is not null or c.aborted > 0) order by t.task
    loop
        changed := changed + milepost.resume_batch(child, resume_batch.note);
    end loop;
    perform milepost.settle_jobs(jobs, 'resume', resume_batch.note);
    perform milepost.note_operation(a, 'resume', resume_batch.note);
    perform milepost.wake_to_advance();
end
$$;

-- Refuses numbers that no task has.
create or replace function milepost.check_tasks(a milepost.batch, tasks int[]) returns void language plpgsql as $$
declare
    missing int;
begin
    select i.task into missing from unnest(tasks) i(task)
    where not exists (select from milepost.batch_task t where t.batch_id = a.id and t.task = i.task) limit 1;
    if found then
        raise exception using errcode = 'MP010', message = format('batch %s has no task %s', a.id, missing), detail = 'task';
    end if;
end
$$;

-- Gives these tasks up, all that have not ended; see cancel_batch.
create or replace function milepost.cancel_tasks(
    batch uuid, tasks int[], note text default null, grace_ms bigint default 10000, generation int default null,
    out changed bigint, out stopping bigint
) language plpgsql as $$
#variable_conflict use_column
declare
    a milepost.batch := milepost.take_batch(cancel_tasks.batch, cancel_tasks.generation);
    jobs uuid[];
    idle int[];
    child uuid;
    inside record;
begin
    perform milepost.check_tasks(a, cancel_tasks.tasks);
    jobs := array(select t.job_id from milepost.batch_task t
                  where t.batch_id = a.id and t.task = any (cancel_tasks.tasks) and t.state in ('active', 'failed', 'aborted') and t.job_id is not null);
    idle := array(select t.task from milepost.batch_task t
                  where t.batch_id = a.id and t.task = any (cancel_tasks.tasks) and t.job_id is null and t.child_id is null
                    and t.state in ('waiting', 'due', 'failed'));
    select s.stopped + cardinality(idle), s.asked into changed, stopping from milepost.stop_jobs(jobs, 'cancel', cancel_tasks.note, grace_ms) s;
    -- All together: none of them is skipped because of another one.
    perform milepost.settle(
        array_fill(a.id, array[cardinality(w.tasks)]), w.tasks, w.states,
        array_fill(cancel_tasks.note, array[cardinality(w.tasks)]), cause => 'cancel', why => cancel_tasks.note)
    from (
        select array_agg(u.task) as tasks, array_agg(u.state) as states
        from (
            select i.task, 'canceled'::milepost.task_state as state from unnest(idle) i(task)
            union all
            select t.task, 'canceled' from milepost.batch_task t
            join milepost.ended e on e.id = t.job_id
            where t.batch_id = a.id and t.job_id = any (jobs) and e.state = 'canceled'
        ) u
    ) w
    where w.tasks is not null;
    for child in
        select t.child_id from milepost.batch_task t
        where t.batch_id = a.id and t.task = any (cancel_tasks.tasks) and t.state in ('active', 'failed', 'aborted') and t.child_id is not null
        order by t.task
    loop
        select * into inside from milepost.cancel_batch(child, cancel_tasks.note, grace_ms);
        changed := changed + inside.changed;
        stopping := stopping + inside.stopping;
    end loop;
end
$$;

-- Gives a batch up: all its tasks but those that are always to run, and what only such ones lead to.
create or replace function milepost.cancel_batch(
    batch uuid, note text default null, grace_ms bigint default 10000, generation int default null, out changed bigint, out stopping bigint
) language plpgsql as $$
#variable_conflict use_column
declare
    given_up int[];
begin
    with recursive reached(version_id, task) as (
        select d.version_id, d.task
        from milepost.batch a
        join milepost.dag_task d on d.version_id = a.version_id and d.pre_cnt = 0
        where a.id = cancel_batch.batch and a.items_of is null
        union
        select r.version_id, u.task
        from reached r
        join milepost.dag_task d on d.version_id = r.version_id and d.task = r.task
        cross join lateral unnest(d.successors) u(task)
        join milepost.dag_task n on n.version_id = r.version_id and n.task = u.task and n.rule <> 'always'
    )
    select array(
        select task from reached
        union all
        select t.task from milepost.batch a join milepost.batch_task t on t.batch_id = a.id
        where a.id = cancel_batch.batch and a.items_of is not null
    ) into given_up;
    select c.changed, c.stopping into changed, stopping
    from milepost.cancel_tasks(cancel_batch.batch, given_up, cancel_batch.note, grace_ms, cancel_batch.generation) c;
end
$$;

-- Says how a task ended, whatever it did: succeeded, skipped or failed.
create or replace function milepost.mark_task(
    batch uuid, task int, state milepost.task_state, note text default null, generation int default null
) returns void language plpgsql as $$
#variable_conflict use_column
declare
    a milepost.batch := milepost.take_batch(mark_task.batch, mark_task.generation);
    t milepost.batch_task;
    left_over record;
begin
    select * into t from milepost.batch_task b where b.batch_id = a.id and b.task = mark_task.task for update;
    if not found then
        raise exception using errcode = 'MP010', message = format('batch %s has no task %s', a.id, mark_task.task), detail = 'task';
    end if;
    if mark_task.state not in ('succeeded', 'skipped', 'failed')
       or t.child_id is not null and t.state in ('active', 'failed', 'aborted')
       or not (case when t.job_id is null or t.state not in ('active', 'failed', 'aborted') then t.state in ('waiting', 'due') or t.state = 'failed' and mark_task.state = 'succeeded'
                    else mark_task.state in ('succeeded', 'skipped') end)
    then
        raise exception using errcode = 'MP012',
            message = format('task %s of batch %s is %s: it cannot be marked as %s', mark_task.task, a.id, t.state, mark_task.state),
            detail = t.state::text;
    end if;
    if t.job_id is not null and t.state in ('active', 'failed', 'aborted') then
        perform milepost.change_job(t.job_id, case mark_task.state when 'succeeded' then 'mark' else 'skip' end::milepost.verb, mark_task.note);
    end if;
    select * into left_over
    from milepost.settle(array[a.id], array[mark_task.task], array[mark_task.state], array[mark_task.note], cause => 'mark', why => mark_task.note);
    if left_over.due_made + left_over.spread_left > 0 then
        perform milepost.wake_to_advance();
    end if;
end
$$;

-- Runs these tasks again, in a new generation: each is decided anew when its predecessors have ended. What comes after
-- them and is not named stays as it is. Answers the generation.
create or replace function milepost.rerun_tasks(
    batch uuid, tasks int[], note text default null, generation int default null
) returns int language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set join_collapse_limit = 1 set jit = off as $$
#variable_conflict use_column
declare
    a milepost.batch := milepost.take_batch(rerun_tasks.batch, rerun_tasks.generation);
    busy record;
    runs int[];
    skips int[];
    child uuid;
begin
    perform milepost.check_tasks(a, rerun_tasks.tasks);
    -- What they counted must all be counted before it is taken back.
    while exists (select from milepost.batch_spread s where s.batch_id = a.id) loop
        perform milepost.spread(2147483647, a.id);
    end loop;
    perform from milepost.batch_task t where t.batch_id = a.id and t.task = any (rerun_tasks.tasks) order by t.task for update;
    select t.task, t.state into busy from milepost.batch_task t
    where t.batch_id = a.id and t.task = any (rerun_tasks.tasks) and t.state in ('due', 'active') order by t.task limit 1;
    if found then
        raise exception using errcode = 'MP012',
            message = format('task %s of batch %s is %s: it cannot be rerun', busy.task, a.id, busy.state), detail = busy.state::text;
    end if;
    rerun_tasks.tasks := array(select t.task from milepost.batch_task t
                               where t.batch_id = a.id and t.task = any (rerun_tasks.tasks) and t.state <> 'waiting' order by t.task);
    if rerun_tasks.tasks = '{}' then
        raise exception using errcode = 'MP014', message = format('there is nothing to rerun in batch %s', a.id);
    end if;
    if a.state in ('done', 'canceled') and exists (
        select from milepost.batch_task t where t.batch_id = a.parent_id and t.task = a.parent_task and t.child_id = a.id)
    then
        raise exception using errcode = 'MP012',
            message = format('batch %s is a task of batch %s, which goes on from its end: rerun that task', a.id, a.parent_id), detail = a.state::text;
    end if;
    -- Their jobs stay as they ended; one that waits for an operator is given up for the next one.
    perform milepost.stop_jobs(
        array(select t.job_id from milepost.batch_task t
              where t.batch_id = a.id and t.task = any (rerun_tasks.tasks) and t.state in ('failed', 'aborted') and t.job_id is not null),
        'cancel', format('its task is rerun in generation %s', a.generation + 1), 0);
    for child in
        select t.child_id from milepost.batch_task t join milepost.batch c on c.id = t.child_id and c.ended_at is null
        where t.batch_id = a.id and t.task = any (rerun_tasks.tasks) order by t.task
    loop
        perform milepost.cancel_batch(child, format('its task is rerun in generation %s', a.generation + 1), 0);
    end loop;
    update milepost.batch set generation = a.generation + 1 where id = a.id;
    perform milepost.settle(
        array_fill(a.id, array[cardinality(rerun_tasks.tasks)]), rerun_tasks.tasks,
        array_fill('waiting'::milepost.task_state, array[cardinality(rerun_tasks.tasks)]),
        array_fill(rerun_tasks.note, array[cardinality(rerun_tasks.tasks)]), 2147483647, cause => 'rerun', why => rerun_tasks.note);
    with decided as materialized (
        select t.task, milepost.decide(d.rule, t.pre_cnt, t.succeeded, t.failed, t.skipped, t.canceled) as decision
        from milepost.batch_task t
        left join milepost.dag_task d on a.items_of is null and d.version_id = a.version_id and d.task = t.task
        where t.batch_id = a.id and t.task = any (rerun_tasks.tasks)
    ),
    anew as (
        update milepost.batch_task t
        set generation = a.generation + 1, job_id = null, child_id = null
        where t.batch_id = a.id and t.task = any (rerun_tasks.tasks)
    )
    select array(select task from decided where decision = 'run' or a.items_of is not null order by task),
           array(select task from decided where decision = 'skip' and a.items_of is null order by task)
    into runs, skips;
    update milepost.batch_task t set state = 'due' where t.batch_id = a.id and t.task = any (runs);
    perform milepost.count_moves(array[a.id], array['waiting'::milepost.task_state], array['due'::milepost.task_state], array[cardinality(runs)], 'rerun', rerun_tasks.note);
    if cardinality(skips) > 0 then
        perform milepost.settle(
            array_fill(a.id, array[cardinality(skips)]), skips, array_fill('skipped'::milepost.task_state, array[cardinality(skips)]));
    end if;
    perform milepost.wake_to_advance();
    return a.generation + 1;
end
$$;
