-- Operators' actions on batches. Public: abort_batch, resume_batch, cancel_batch, cancel_tasks, mark_task; those that rerun
-- tasks are in batch_reruns.sql. They join the caller's transaction. note: the reason, for the history; grace_ms: how long
-- running jobs have to stop; generation: the one that the caller has seen; if the batch has another one, nothing changes.
-- SQLSTATEs: see batches.sql.

-- Locks and returns the batch that an operator is about to change, so that no other transaction settles its ends.
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
        raise exception using errcode = 'MP013', message = format('batch %s was rerun in the meantime; check its state and try again', of_batch);
    end if;
    return a;
end
$$;

-- Adds an operator's action to the history of a batch, after updating its state, which may depend on the action alone. a:
-- the batch before the action.
create or replace function milepost.note_operation(a milepost.batch, what milepost.verb, why text) returns void language plpgsql as $$
begin
    perform milepost.count_moves(array[a.id], array['waiting'::milepost.task_state], array['waiting'::milepost.task_state], array[0], what, why);
    if not exists (select from milepost.batch b where b.id = a.id and b.state <> a.state) then
        insert into milepost.batch_history (batch_id, generation, verb, from_state, to_state, note)
        select b.id, b.generation, what, b.state, b.state, why from milepost.batch b where b.id = a.id;
    end if;
end
$$;

-- Stops jobs by verb (cancel or abort): those that wait immediately, those that run after grace_ms at the latest. Returns how many
-- were stopped, and how many were requested to stop. A job that was requested to cancel before is canceled.
create or replace function milepost.stop_jobs(
    jobs uuid[], what milepost.verb, note text, grace_ms bigint, out stopped int, out asked int
) language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set join_collapse_limit = 1 set jit = off as $$
#variable_conflict use_column
declare
    ended uuid[];
begin
    perform from milepost.live l where l.id = any (jobs) order by l.id for update;
    with running as (
        update milepost.live l
        set stop_verb = milepost.verb_that_stops(l.stop_verb, what),
            stop_note = case when milepost.verb_that_stops(l.stop_verb, what) = what then stop_jobs.note else l.stop_note end,
            stop_at = least(l.stop_at, now() + grace_ms * interval '1 millisecond')
        where l.id = any (jobs) and l.state = 'running' and grace_ms > 0
        returning 1
    )
    select count(*)::int into asked from running;
    with waiting as materialized (
        select l.*, does.verb as does, case when does.verb = what then stop_jobs.note else l.stop_note end as why,
               case does.verb when 'abort' then 'aborted' else 'canceled' end::milepost.job_state as state_after
        from milepost.live l
        cross join lateral milepost.verb_that_stops(l.stop_verb, what) does(verb)
        join milepost.transition r on r.from_state = l.state and r.verb = what
        where l.id = any (jobs) and (l.state <> 'running' or grace_ms = 0)
    ),
    gone as (
        delete from milepost.live l using waiting w where l.id = w.id and w.does = 'cancel'
    ),
    kept as (
        insert into milepost.ended (id, ended_at, started_at, token, attempt, max_attempts, state)
        select id, now(), started_at, token, attempt, max_attempts, state_after from waiting where does = 'cancel'
    ),
    rested as (
        update milepost.live l
        set state = w.state_after, attempt = l.attempt - (w.state = 'running')::int, ready_at = null, due_at = null, timed = null, failed_at = null, worker_id = null, claim_id = null,
            stop_verb = null, stop_at = null, stop_note = null
        from waiting w where l.id = w.id and w.does = 'abort'
    ),
    logged as (
        insert into milepost.history (job_id, token, attempt, worker_id, verb, from_state, to_state, note)
        select id, token, attempt, worker_id, does, state, state_after, why from waiting
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

-- Stops a batch: no further tasks start, waiting jobs are aborted, running jobs are asked to stop. Returns the number of
-- tasks stopped and of tasks asked to stop.
create or replace function milepost.abort_batch(
    batch uuid, note text default null, grace_ms bigint default 10000, generation int default null, out changed bigint, out stopping bigint
) language plpgsql as $$
#variable_conflict use_column
declare
    a milepost.batch := milepost.take_batch(abort_batch.batch, abort_batch.generation);
    jobs uuid[];
    waits int[];
    child uuid;
    inside record;
begin
    perform milepost.check_reason(abort_batch.note);
    -- Can be repeated while some of its tasks still run: the earlier of the two grace times applies.
    if a.state not in ('running', 'failed') or a.stop is not null and a.active = 0 then
        raise exception using errcode = 'MP012', message = format('batch %s is %s: it cannot be aborted', a.id, a.state), detail = a.state::text;
    end if;
    update milepost.batch set stop = 'abort' where id = a.id;
    jobs := array(select t.job_id from milepost.batch_task t where t.batch_id = a.id and t.state = 'active' and t.job_id is not null);
    select s.stopped, s.asked into changed, stopping from milepost.stop_jobs(jobs, 'abort', abort_batch.note, grace_ms) s;
    for child in
        select c.id from milepost.batch_task t join milepost.batch c on c.id = t.child_id
        where t.batch_id = a.id and t.state = 'active' and c.state in ('running', 'failed') and (c.stop is null or c.active > 0) order by t.task
    loop
        select * into inside from milepost.abort_batch(child, abort_batch.note, grace_ms);
        changed := changed + inside.changed;
        stopping := stopping + inside.stopping;
    end loop;
    waits := array(select t.task from milepost.batch_task t
                   where t.batch_id = a.id and t.state = 'active' and t.job_id is null and t.child_id is null order by t.task);
    changed := changed + cardinality(waits);
    perform milepost.settle(
        array_fill(a.id, array[cardinality(waits)]), waits, array_fill('aborted'::milepost.task_state, array[cardinality(waits)]),
        array_fill(abort_batch.note, array[cardinality(waits)]), cause => 'abort', why => abort_batch.note);
    perform milepost.settle_jobs(jobs, 'abort', abort_batch.note);
    perform milepost.note_operation(a, 'abort', abort_batch.note);
end
$$;

-- Resumes a stopped batch: aborted jobs wait for a worker again, and held-back tasks start.
create or replace function milepost.resume_batch(
    batch uuid, note text default null, generation int default null, out changed bigint
) language plpgsql as $$
#variable_conflict use_column
declare
    a milepost.batch := milepost.take_batch(resume_batch.batch, resume_batch.generation);
    jobs uuid[];
    waits int[];
    child uuid;
    job uuid;
begin
    perform milepost.check_reason(resume_batch.note);
    if a.stop is null and a.aborted = 0 then
        raise exception using errcode = 'MP012', message = format('batch %s is %s: it cannot be resumed', a.id, a.state), detail = a.state::text;
    end if;
    update milepost.batch set stop = null where id = a.id;
    -- Withdraws the requests to abort from jobs that have not stopped yet.
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
    -- They wait until the same time as before. Signals may have arrived.
    with again as (
        update milepost.batch_wait w set check_at = now()
        from milepost.batch_task t
        where w.batch_id = a.id and t.batch_id = a.id and t.task = w.task and t.state = 'aborted' and t.job_id is null and t.child_id is null
        returning w.task
    )
    select array_agg(g.task order by g.task) into waits from again g;
    if waits is not null then
        changed := changed + cardinality(waits);
        perform milepost.settle(
            array_fill(a.id, array[cardinality(waits)]), waits, array_fill('active'::milepost.task_state, array[cardinality(waits)]),
            array_fill(resume_batch.note, array[cardinality(waits)]), cause => 'resume', why => resume_batch.note);
    end if;
    perform milepost.settle_jobs(jobs, 'resume', resume_batch.note);
    perform milepost.note_operation(a, 'resume', resume_batch.note);
    perform milepost.wake_to_advance();
end
$$;

-- Refuses numbers that are not tasks of the batch.
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

-- Cancels those of the given tasks that have not ended; see cancel_batch.
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
    perform milepost.check_reason(cancel_tasks.note);
    perform milepost.check_tasks(a, cancel_tasks.tasks);
    jobs := array(select t.job_id from milepost.batch_task t
                  where t.batch_id = a.id and t.task = any (cancel_tasks.tasks) and t.state in ('active', 'failed', 'aborted') and t.job_id is not null);
    idle := array(select t.task from milepost.batch_task t
                  where t.batch_id = a.id and t.task = any (cancel_tasks.tasks) and t.job_id is null and t.child_id is null
                    and t.state in ('waiting', 'due', 'active', 'failed', 'aborted'));
    select s.stopped + cardinality(idle), s.asked into changed, stopping from milepost.stop_jobs(jobs, 'cancel', cancel_tasks.note, grace_ms) s;
    -- In one call, so that none of them is skipped because of another one.
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

-- Cancels a batch: all its tasks, except those with the rule always and tasks that can be reached only through such ones.
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
        join milepost.dag_task d on d.version_id = a.version_id and d.pre_cnt = 0 and d.rule <> 'always'
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

-- Sets the outcome of a task: succeeded, skipped or failed.
create or replace function milepost.mark_task(
    batch uuid, task int, state milepost.task_state, note text default null, generation int default null
) returns void language plpgsql as $$
#variable_conflict use_column
declare
    a milepost.batch := milepost.take_batch(mark_task.batch, mark_task.generation);
    t milepost.batch_task;
    left_over record;
begin
    perform milepost.check_reason(mark_task.note);
    select * into t from milepost.batch_task b where b.batch_id = a.id and b.task = mark_task.task for update;
    if not found then
        raise exception using errcode = 'MP010', message = format('batch %s has no task %s', a.id, mark_task.task), detail = 'task';
    end if;
    -- No worker claims its job from here on. One that is claiming it now is waited for.
    perform from milepost.live l where l.id = t.job_id for update;
    if mark_task.state not in ('succeeded', 'skipped', 'failed')
       or t.child_id is not null and t.state in ('active', 'failed', 'aborted')
       or not (case when t.job_id is null or t.state not in ('active', 'failed', 'aborted') then
                        t.state in ('waiting', 'due') or t.state in ('failed', 'aborted') and mark_task.state = 'succeeded'
                        -- It waits.
                        or t.state = 'active' and t.job_id is null
                    else mark_task.state in ('succeeded', 'skipped') and milepost.allows(
                        t.job_id, case mark_task.state when 'succeeded' then 'mark' else 'skip' end::milepost.verb) end)
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
