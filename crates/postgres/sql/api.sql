-- The functions of schema milepost. Replaced as a whole by every migration whose binary has other ones. Those of
-- groups are in groups.sql.
--
-- Public: enqueue, enqueue_many, cancel, change, complete. They join the caller's transaction.
-- SQLSTATEs: MP001 the job cannot be accepted as it is; MP002 there is no such job; MP003 the job's state
-- does not allow the verb. Payloads that are not JSON fail with PostgreSQL's own 22P02 (syntax) or 22P05 (NUL).

-- A UUIDv7 (RFC 9562) on the database's clock, with fractions of the millisecond (its method 3): those that one statement makes are in
-- order.
create or replace function milepost.uuid_v7() returns uuid language sql volatile as $$
    select (overlay(lpad(to_hex((date_part('epoch', clock_timestamp()) * 4096000)::bigint), 15, '0') placing '7' from 13 for 0)
            || substr(gen_random_uuid()::text, 20))::uuid
$$;

-- Wakes idle workers when this transaction commits. Costs a NOTIFY, and its database-wide lock, only when
-- somebody sleeps: a waker that sleeps holds the lock exclusively; while we hold it shared nobody can fall
-- asleep before our commit. SET milepost.wake = 'off' leaves it out (two-phase commits refuse NOTIFY).
create or replace function milepost.wake() returns void language plpgsql as $$
begin
    if current_setting('milepost.wake', true) = 'off' then
        return;
    end if;
    if not pg_try_advisory_xact_lock_shared(19792, 1) then
        notify milepost_wake, 'ready';
    end if;
end
$$;

-- Tells the workers that hold a job to look who is to stop. As costly as every NOTIFY, but people are rare.
create or replace function milepost.wake_to_stop() returns void language plpgsql as $$
begin
    if current_setting('milepost.wake', true) is distinct from 'off' then
        notify milepost_wake, 'stop';
    end if;
end
$$;

-- The longest wait there is, in ms: a hundred years.
create or replace function milepost.wait_ms_max() returns bigint language sql immutable parallel safe as $$
    select 3155760000000
$$;

-- Refuses a reason that is too long for a history.
create or replace function milepost.check_reason(reason text) returns void language plpgsql as $$
begin
    if char_length(reason) > 1000 then
        raise exception using errcode = 'MP001', message = format('the reason has %s characters; the limit is 1000', char_length(reason));
    end if;
    if milepost.has_control(translate(reason, E'\n\r\t', '')) then
        raise exception using errcode = 'MP001', message = 'of control characters the reason may have line breaks and tabs only';
    end if;
end
$$;

-- Refuses jobs that cannot be accepted, and names the first one with its fault.
create or replace function milepost.check_jobs(
    kinds text[], queues text[], keys text[], groups text[], priorities int[], max_attempts int[],
    run_ats timestamptz[], delays_ms bigint[], timeouts_ms bigint[]
) returns void language plpgsql as $$
declare
    bad record;
    latest timestamptz := now() + milepost.wait_ms_max() * interval '1 millisecond';
begin
    select c.ord, c.why into bad from (
        select i.ord, case
            when i.kind is null or i.kind = '' or octet_length(i.kind) > 200 then 'the kind must have 1 to 200 bytes'
            when i.queue = '' or octet_length(i.queue) > 200 then 'the queue must have 1 to 200 bytes'
            when i.key = '' or octet_length(i.key) > 1000 then 'the key must have 1 to 1000 bytes'
            when i.grp = '' or octet_length(i.grp) > 200 then 'the group must have 1 to 200 bytes'
            when i.priority not between 1 and 4 then 'the priority must be from 1 (first) to 4 (last)'
            when i.attempts not between 1 and 1000000 then 'max_attempts must be from 1 to 1000000'
            when not isfinite(i.run_at) or i.run_at > latest or i.run_at < to_timestamp(0) then 'run_at must be a time from 1970 on and within the next hundred years'
            when i.delay_ms not between 0 and milepost.wait_ms_max() then 'the delay must be from 0 ms to a hundred years'
            when i.timeout_ms not between 1 and milepost.wait_ms_max() then 'the time-out must be from 1 ms to a hundred years'
            when milepost.has_control(concat(i.kind, i.queue, i.key, i.grp)) then 'names and keys must not have control characters'
            when milepost.is_deceptive(concat(i.kind, i.queue)) then 'names must not have characters that change the direction of text, or break lines'
            end as why
        from unnest(kinds, queues, keys, groups, priorities, max_attempts, run_ats, delays_ms, timeouts_ms)
            with ordinality as i(kind, queue, key, grp, priority, attempts, run_at, delay_ms, timeout_ms, ord)
    ) c
    where c.why is not null
    order by c.ord
    limit 1;
    if found then
        raise exception using errcode = 'MP001', message = format('job %s of the call: %s', bad.ord - 1, bad.why);
    end if;
end
$$;

-- Refuses what is no traceparent of W3C Trace Context.
create or replace function milepost.check_traceparents(traceparents text[]) returns void language plpgsql as $$
declare
    wrong record;
begin
    select t.ord - 1 as at, t.traceparent into wrong
    from unnest(traceparents) with ordinality t(traceparent, ord)
    where t.traceparent !~ '^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$'
    order by t.ord limit 1;
    if found then
        raise exception using errcode = 'MP001',
            message = format('job %s of the call: traceparent %L is none of W3C Trace Context, as '
                             '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01', wrong.at, left(wrong.traceparent, 60));
    end if;
end
$$;

-- Refuses what is Milepost's own: kinds and groups of its own bulk jobs, and the ticks of schedules, of which another job would take the place.
create or replace function milepost.refuse_reserved(kinds text[], keys text[], groups text[], nominal_ats timestamptz[]) returns void
language plpgsql as $$
declare
    bad record;
begin
    select j.ord - 1 as at, case
        when starts_with(j.kind, 'milepost.') then 'kinds that begin with milepost. are Milepost''s own'
        when starts_with(j.grp, 'milepost.') then 'groups that begin with milepost. are Milepost''s own'
        when starts_with(j.key, 'schedule/') then 'keys that begin with schedule/ are those of ticks'
        else 'only ticks of schedules have a nominal time' end as why
    into bad
    from unnest(kinds, keys, groups, nominal_ats) with ordinality j(kind, key, grp, nominal_at, ord)
    where starts_with(j.kind, 'milepost.') or starts_with(j.grp, 'milepost.') or starts_with(j.key, 'schedule/') or j.nominal_at is not null
    order by j.ord limit 1;
    if found then
        raise exception using errcode = 'MP001', message = format('job %s of the call: %s', bad.at, bad.why);
    end if;
end
$$;

-- Enqueues many jobs at once, all or none, and answers in their order. Arrays that are given must be as long
-- as payloads; an array or element that is null means the default. keys: at most one job of a kind ever has a
-- key; the job that has it is answered with duplicate = true and nothing is changed. run_ats and delays_ms
-- (from now) say when a job may start at the earliest. ids: client-made UUIDv7s. payload_bytes_max: of a payload
-- as JSON text; null: the caller has seen to it, which is believed of trusted accounts only. nominal_ats: the ticks of schedules that the
-- jobs stand for. traceparents: the spans of traces that the jobs follow from, as W3C Trace Context writes them. A job of a kind that is a bulk
-- job is refused unless it is as its definition says; but for ticks, and where a trusted account has set milepost.starts_bulk to on.
create or replace function milepost.enqueue_many(
    kinds text[],
    payloads jsonb[],
    keys text[] default null,
    queues text[] default null,
    priorities int[] default null,
    groups text[] default null,
    run_ats timestamptz[] default null,
    delays_ms bigint[] default null,
    max_attempts int[] default null,
    timeouts_ms bigint[] default null,
    ids uuid[] default null,
    payload_bytes_max bigint default 1048576,
    nominal_ats timestamptz[] default null,
    traceparents text[] default null
) returns table (job_id uuid, duplicate boolean) language plpgsql security definer
set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
declare
    jobs int := coalesce(cardinality(payloads), 0);
    bad record;
    owners uuid[];
    waiting text[];
    is_trusted boolean := milepost.caller_is_trusted();
begin
    if jobs = 0 then
        return;
    end if;
    if jobs <> any (array[
        coalesce(cardinality(kinds), 0), coalesce(cardinality(keys), jobs), coalesce(cardinality(queues), jobs),
        coalesce(cardinality(priorities), jobs), coalesce(cardinality(groups), jobs),
        coalesce(cardinality(run_ats), jobs), coalesce(cardinality(delays_ms), jobs),
        coalesce(cardinality(max_attempts), jobs), coalesce(cardinality(timeouts_ms), jobs),
        coalesce(cardinality(ids), jobs), coalesce(cardinality(nominal_ats), jobs),
        coalesce(cardinality(traceparents), jobs)])
    then
        raise exception using errcode = 'MP001', message = 'the arrays must have as many elements as payloads';
    end if;
    perform milepost.check_jobs(
        kinds, queues, keys, groups, priorities, max_attempts, run_ats, delays_ms, timeouts_ms);
    if traceparents is not null then
        perform milepost.check_traceparents(traceparents);
    end if;
    if not is_trusted then
        perform milepost.refuse_reserved(kinds, keys, groups, nominal_ats);
        payload_bytes_max := least(coalesce(payload_bytes_max, 1048576), milepost.document_bytes_limit());
    end if;
    if payload_bytes_max is not null then
        select p.ord - 1 as at, p.why into bad from (
            select i.ord, milepost.refuse_document(i.payload, payload_bytes_max) as why from unnest(payloads) with ordinality i(payload, ord)
        ) p
        where p.why is not null order by p.ord limit 1;
        if found then
            raise exception using errcode = 'MP001', message = format('job %s of the call: the payload %s', bad.at, bad.why);
        end if;
    end if;
    select d.name into bad from milepost.bulk_definition d
    where d.name = any(kinds) and not (is_trusted and current_setting('milepost.starts_bulk', true) is not distinct from 'on')
      and exists (
          select from unnest(kinds, queues, groups, enqueue_many.max_attempts, nominal_ats) k(kind, queue, grp, attempts, nominal_at)
          where k.kind = d.name and k.nominal_at is null
            and (coalesce(k.queue, 'default'), k.grp, coalesce(k.attempts, 25)) is distinct from (d.queue, d.group_key, d.max_attempts))
    limit 1;
    if found then
        raise exception using errcode = 'MP001',
            message = format('job %s of the call: the kind %L is a bulk job', array_position(kinds, bad.name) - 1, bad.name),
            hint = 'start it with milepost.start_bulk, or `milepost bulk start`';
    end if;
    if exists (select from unnest(nominal_ats) n(at) where n.at not between '0001-01-02 00:00Z' and '9999-12-30 00:00Z') then
        raise exception using errcode = 'MP001', message = 'nominal_at must be a time in the years 1 to 9999';
    end if;
    if ids is null then
        ids := array(select milepost.uuid_v7() from generate_series(1, jobs));
    elsif array_position(ids, null) is not null then
        ids := array(select coalesce(i.id, milepost.uuid_v7()) from unnest(ids) with ordinality i(id, ord) order by i.ord);
    end if;

    if exists (select from unnest(keys) k where k is not null) then
        loop
            -- A separate statement, so that the loser of a race sees the winner's row in the next one; sorted, so
            -- that two calls with the same keys cannot deadlock.
            insert into milepost.job_key (kind, key, job_id)
            select i.kind, i.key, i.id from unnest(kinds, keys, ids) i(kind, key, id)
            where i.key is not null
            order by i.kind, i.key
            on conflict do nothing;

            -- The row of this call first: in repeatable read, one that was deleted since the snapshot is visible beside it.
            owners := array(
                select case when i.key is null then i.id else (
                           select k.job_id from milepost.job_key k
                           where k.kind = i.kind and k.key = i.key
                           order by k.job_id = i.id desc limit 1) end
                from unnest(kinds, keys, ids) with ordinality i(kind, key, id, ord)
                order by i.ord);
            -- Retention may have deleted a row of another job while the insert waited for another key.
            exit when array_position(owners, null) is null;
        end loop;
    end if;

    with input as materialized (
        select i.id, i.kind, coalesce(i.queue, 'default') as queue, coalesce(i.payload, '{}') as payload, i.key, i.grp,
               coalesce(i.priority, 2)::smallint as priority, coalesce(i.attempts, 25) as attempts, i.timeout_ms,
               i.nominal_at, i.traceparent,
               coalesce(case when i.run_at is not null then greatest(i.run_at, now()) end, now() + i.delay_ms * interval '1 millisecond', now()) as start_at
        from unnest(ids, kinds, queues, payloads, keys, groups, priorities, max_attempts, timeouts_ms, run_ats,
                    delays_ms, owners, nominal_ats, traceparents)
            as i(id, kind, queue, payload, key, grp, priority, attempts, timeout_ms, run_at, delay_ms, owner,
                 nominal_at, traceparent)
        where i.owner is null or i.owner = i.id
    ),
    jobs_made as (
        insert into milepost.job (id, kind, queue, payload, key, group_key, priority, max_attempts, timeout_ms, created_at,
                                  nominal_at, traceparent)
        select id, kind, queue, payload, key, grp, priority, attempts, timeout_ms, now(), nominal_at, traceparent from input
    ),
    live_made as (
        insert into milepost.live (id, kind, queue, priority, group_key, max_attempts, state, ready_at, due_at, timed)
        select id, kind, queue, priority, grp, attempts,
               case when grp is null then 'pending' else 'blocked' end::milepost.job_state,
               case when grp is null then start_at end,
               case when grp is not null then start_at end, case when grp is not null and start_at > now() then true end
        from input
    ),
    logged as (
        insert into milepost.history (job_id, token, attempt, verb, to_state, ready_at)
        select id, 0, 0, 'create', case when grp is null then 'pending' else 'blocked' end::milepost.job_state,
               case when start_at > now() then start_at end
        from input
    )
    -- Those whose time has not come do not wait for a slot yet.
    select array_agg(grp) into waiting from input where grp is not null and start_at <= now();

    if waiting is not null then
        perform milepost.hand_over(waiting, true);
    end if;
    perform milepost.wake();

    if owners is null then
        return query select i.id, false from unnest(ids) i(id);
    else
        if owners <> ids then
            perform milepost.confirm_replication();
        end if;
        return query select i.owner, i.owner <> i.id from unnest(ids, owners) i(id, owner);
    end if;
end
$$;

-- Enqueues one job. See enqueue_many.
create or replace function milepost.enqueue(
    kind text,
    payload jsonb default '{}',
    key text default null,
    queue text default null,
    priority int default null,
    group_key text default null,
    run_at timestamptz default null,
    max_attempts int default null,
    timeout_ms bigint default null,
    id uuid default null,
    traceparent text default null
) returns table (job_id uuid, duplicate boolean) language sql as $$
    select * from milepost.enqueue_many(
        array[kind], array[payload], array[key], array[queue], array[priority], array[group_key],
        array[run_at], null, array[max_attempts], array[timeout_ms],
        array[coalesce(id, milepost.uuid_v7())], traceparents => array[traceparent])
$$;

-- Does to one job what an operator may do: release, cancel, skip, mark, abort, retry_now, resume, rerun or
-- snooze. Answers the state that follows, or 'stop_requested' when the job runs and has grace_ms to stop by
-- itself. delay_ms: not to be claimed before that has passed.
create or replace function milepost.change(
    job uuid, what milepost.verb, note text default null, delay_ms bigint default 0, grace_ms bigint default 0
) returns text language plpgsql as $$
declare
    task record;
    answer text;
begin
    select j.batch_id, j.task, d.key, t.job_id is distinct from job as replaced into task
    from milepost.job j
    join milepost.batch a on a.id = j.batch_id
    join milepost.batch_task t on t.batch_id = j.batch_id and t.task = j.task
    left join milepost.dag_task d on d.version_id = a.version_id and d.task = coalesce(a.items_of, j.task)
    where j.id = change.job and j.batch_id is not null;
    if not found then
        answer := milepost.change_job(job, what, note, delay_ms, grace_ms);
        if what = 'rerun' then
            -- Its batch is forgotten, or does not have its task any more: it runs by itself.
            update milepost.job j set batch_id = null, task = null where j.id = job and j.batch_id is not null;
        end if;
        return answer;
    end if;
    if what = 'rerun' or task.replaced and what in ('retry_now', 'resume') then
        raise exception using errcode = 'MP012',
            message = format('job %s is task %L of batch %s, which is run again with what follows from it', job, task.key, task.batch_id),
            detail = task.batch_id || ' ' || task.key,
            hint = format('milepost batch rerun %s --task %s', task.batch_id, task.key);
    end if;
    -- Before the row of the job is locked.
    perform milepost.join_settling(array[task.batch_id]);
    answer := milepost.change_job(job, what, note, delay_ms, grace_ms);
    if not task.replaced then
        perform milepost.tell_batches(array[job], what, note);
    end if;
    return answer;
end
$$;

-- Keeps everybody from changing a job until the transaction ends, as changing it does.
create or replace function milepost.hold_job(job uuid) returns void language plpgsql as $$
begin
    perform milepost.join_settling(array[j.batch_id]) from milepost.job j where j.id = hold_job.job and j.batch_id is not null;
    perform from milepost.live l where l.id = hold_job.job for update;
    if not found then
        perform from milepost.ended e where e.id = hold_job.job for update;
    end if;
end
$$;

-- Whether the state of a job allows this verb.
create or replace function milepost.allows(job uuid, what milepost.verb) returns boolean language sql stable as $$
    select exists (
        select from milepost.transition t
        where t.verb = what
          and t.from_state = coalesce((select l.state from milepost.live l where l.id = job),
                                      (select e.state from milepost.ended e where e.id = job)))
$$;

-- The verb that stops a running job if a stop was requested before: a requested cancel is final, while an abort is not.
create or replace function milepost.verb_that_stops(requested milepost.verb, what milepost.verb) returns milepost.verb language sql immutable as $$
    select case when requested = 'cancel' and what = 'abort' then 'cancel'::milepost.verb else what end
$$;

-- The same to a job that is no task of a batch, or whose batch is told by the caller.
create or replace function milepost.change_job(
    job uuid, what milepost.verb, note text default null, delay_ms bigint default 0, grace_ms bigint default 0
) returns text language plpgsql as $$
declare
    l milepost.live;
    e milepost.ended;
    j milepost.job;
    now_state milepost.job_state;
    next_state milepost.job_state;
    delay bigint := coalesce(delay_ms, 0);
    grace bigint := coalesce(grace_ms, 0);
    ready timestamptz;
begin
    if greatest(delay, grace) > milepost.wait_ms_max() or least(delay, grace) < 0 then
        raise exception using errcode = 'MP001', message = 'delay_ms and grace_ms must be from 0 to a hundred years';
    end if;
    perform milepost.check_reason(note);
    ready := now() + delay * interval '1 millisecond';
    -- Others may move it between the two tables while this one waits for its row.
    loop
        select * into l from milepost.live where id = job for update;
        exit when found;
        select * into e from milepost.ended where id = job for update;
        exit when found;
        perform 1 from milepost.live where id = job union all select 1 from milepost.ended where id = job;
        if not found then
            raise exception using errcode = 'MP002', message = format('there is no job %s', job);
        end if;
    end loop;
    now_state := coalesce(l.state, e.state);
    select t.to_state into next_state from milepost.transition t where t.from_state = now_state and t.verb = what;
    if not found or what in ('claim', 'succeed', 'retry', 'fail', 'yield') then
        raise exception using errcode = 'MP003',
            message = format('job %s: a job that is %s cannot %s', job, now_state, what),
            detail = now_state::text;
    end if;

    if milepost.verb_that_stops(l.stop_verb, what) <> what then
        what := l.stop_verb;
        note := l.stop_note;
        next_state := 'canceled';
    end if;

    if what = 'release' and l.group_key is not null then
        if not milepost.take_slot(l.group_key, job) then
            raise exception using errcode = 'MP003',
                message = format('job %s: its group %s is taken', job, l.group_key), detail = now_state::text;
        end if;
    end if;

    if now_state = 'running' and grace > 0 then
        update milepost.live
        set stop_verb = what, stop_note = note, stop_at = least(stop_at, now() + grace * interval '1 millisecond')
        where id = job;
        perform milepost.wake_to_stop();
        return 'stop_requested';
    end if;

    if next_state in ('succeeded', 'canceled', 'skipped') then
        delete from milepost.live where id = job;
        insert into milepost.ended (id, ended_at, started_at, token, attempt, max_attempts, state)
        values (job, now(), l.started_at, l.token, l.attempt, l.max_attempts, next_state);
    elsif what = 'rerun' then
        delete from milepost.ended where id = job;
        delete from milepost.progress where job_id = job;
        select * into j from milepost.job asked where asked.id = job;
        l.token := e.token;
        l.attempt := e.attempt;
        l.group_key := j.group_key;
        insert into milepost.live (id, token, attempt, max_attempts, state, priority, kind, queue, group_key)
        values (job, e.token, e.attempt, e.attempt + j.max_attempts, now_state, j.priority, j.kind, j.queue, j.group_key);
    elsif what = 'resume' then
        update milepost.live set max_attempts = greatest(l.max_attempts, l.attempt + 1) where id = job;
    elsif now_state = 'failed' then
        select * into j from milepost.job asked where asked.id = job;
        update milepost.live set max_attempts = l.attempt + j.max_attempts where id = job;
    end if;

    -- A job that comes back from where it held no slot of its group waits for one.
    if next_state = 'pending' and l.group_key is not null and now_state in ('failed', 'aborted', 'succeeded', 'canceled', 'skipped') then
        next_state := 'blocked';
    end if;
    update milepost.live
    set state = next_state,
        ready_at = case when next_state in ('pending', 'retry_wait') then ready end,
        due_at = case when next_state = 'blocked' then ready end,
        timed = case when next_state = 'blocked' and delay > 0 then true end,
        -- An abort spends no attempt.
        attempt = attempt - (now_state = 'running' and what = 'abort')::int,
        worker_id = null, claim_id = null, stop_verb = null, stop_at = null, stop_note = null, failed_at = null
    where id = job;

    insert into milepost.history (job_id, token, attempt, worker_id, verb, from_state, to_state, ready_at, note)
    values (job, l.token, l.attempt, l.worker_id, what, now_state, next_state,
            case when next_state in ('pending', 'retry_wait', 'blocked') and delay > 0 then ready end, note);

    if l.group_key is not null then
        if next_state not in ('pending', 'running', 'retry_wait', 'blocked') then
            perform milepost.free_groups(array[job]);
        elsif next_state = 'blocked' and delay = 0 then
            perform milepost.hand_over(array[l.group_key], true);
            select state into next_state from milepost.live where id = job;
        end if;
    end if;
    if next_state in ('pending', 'blocked') then
        perform milepost.wake();
    end if;
    return next_state;
end
$$;

-- Cancels a job: at once when it waits; a running one is asked to stop and fenced off after grace_ms.
create or replace function milepost.cancel(job uuid, reason text default null, grace_ms bigint default 10000)
returns text language sql as $$
    select milepost.change(job, 'cancel', reason, 0, coalesce(grace_ms, 10000))
$$;

-- Ends the run of a job as succeeded, in the transaction of its effects. Answers false when the job has moved on:
-- then another attempt owns it, and the caller must roll back.
-- Repeats finish_succeeded.sql: as a function of both, the plan of that hot statement could not be explained any more.
create or replace function milepost.complete(job uuid, run_token int, result jsonb default null) returns boolean
language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
declare
    grouped boolean;
    of_batch uuid;
    refused text;
begin
    select j.batch_id into of_batch from milepost.job j where j.id = job;
    -- Those who come after a task read what it returned.
    refused := milepost.refuse_document(result, case when of_batch is null then 1048576 else 262144 end);
    if refused is not null then
        raise exception using errcode = 'MP011', message = format('the result of job %s %s', job, refused);
    end if;
    if of_batch is not null then
        perform milepost.join_settling(array[of_batch]);
    end if;
    with gone as (
        delete from milepost.live l
        where l.id = job and l.token = run_token and l.state = 'running'
        returning l.token, l.attempt, l.max_attempts, l.worker_id, l.started_at, l.group_key
    ),
    kept as (
        insert into milepost.ended (id, ended_at, started_at, token, attempt, max_attempts, state, result)
        select job, now(), g.started_at, g.token, g.attempt, g.max_attempts, 'succeeded', complete.result from gone g
    ),
    logged as (
        insert into milepost.history (job_id, token, attempt, worker_id, verb, from_state, to_state)
        select job, g.token, g.attempt, g.worker_id, 'succeed', 'running', 'succeeded' from gone g
    )
    select g.group_key is not null into grouped from gone g;
    if not found then
        return false;
    end if;
    -- Tasks before groups: see settle.sql for the order of locks.
    if of_batch is not null then
        perform milepost.tell_batches(array[job]);
    end if;
    if grouped then
        perform milepost.free_groups(array[job]);
    end if;
    return true;
end
$$;

-- With its owner's rights, so that an application needs none on tables: executable by those who are granted it.
revoke execute on function milepost.enqueue_many from public;
