-- Batches: start, and release of due tasks. Public: start_batch, which joins the caller's transaction. The consequences of
-- ends are in settle.sql, operators' actions in batch_operations.sql.
-- SQLSTATEs: MP010 the DAG, version, batch or task does not exist; MP011 the input cannot be accepted; MP012 the state of
-- the batch or task does not allow the operation; MP013 the batch has another generation; MP014 there is nothing to rerun.

-- Starts a batch with all its tasks; tasks without predecessors can run when the caller commits. key: at most one batch of
-- the DAG has it; if it exists, it is returned with duplicate = true and nothing changes. version: 64 digits, or a unique
-- prefix; null: the latest. input_checked: the caller has checked the input against the DAG's schema. nominal_at: the tick
-- that the batch is for, which its expressions see as `tick`; nominal_zone: the time zone of the tick's date, as an IANA
-- name (default UTC).
create or replace function milepost.start_batch(
    dag text, key text default null, input jsonb default '{}', version text default null, input_checked boolean default false,
    id uuid default null, nominal_at timestamptz default null,
    traceparent text default null, nominal_zone text default null
) returns table (batch_id uuid, duplicate boolean) language plpgsql as $$
declare
    made record;
begin
    if nominal_zone is not null and nominal_at is null then
        raise exception using errcode = 'MP011', message = 'nominal_zone is the time zone of nominal_at, which is missing; pass both';
    end if;
    -- For other accounts, begin_batch checks it.
    if nominal_zone is not null and milepost.caller_is_trusted() then
        perform milepost.check_zone(nominal_zone);
    end if;
    select * into made from milepost.begin_batch(dag, key, input, version, input_checked, id, nominal_at, traceparent, nominal_zone);
    if made.due_made > 0 then
        perform milepost.wake_to_advance();
    end if;
    return query select made.batch_id, made.duplicate;
end
$$;

-- Like start_batch, for callers that evaluate due tasks and check the time zone themselves, which is accepted only from
-- trusted accounts. Returns the number of due tasks.
create or replace function milepost.begin_batch(
    dag text, key text, input jsonb, version text, input_checked boolean, id uuid, nominal_at timestamptz,
    traceparent text, nominal_zone text, out batch_id uuid, out duplicate boolean, out due_made int
) language plpgsql security definer
set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
declare
    chosen milepost.dag_version;
    refused text;
begin
    if octet_length(key) not between 1 and 1000 or milepost.has_control(key) then
        raise exception using errcode = 'MP011', message = 'the key of a batch must have 1 to 1000 bytes and no control characters';
    end if;
    if not milepost.caller_is_trusted() then
        if starts_with(key, 'schedule/') then
            raise exception using errcode = 'MP011', message = 'keys that begin with schedule/ are reserved for ticks';
        end if;
        if nominal_zone is not null then
            perform milepost.check_zone(nominal_zone);
        end if;
    end if;
    refused := milepost.refuse_document(input, 1048576);
    if refused is not null then
        raise exception using errcode = 'MP011', message = format('the input %s', refused);
    end if;
    if nominal_at not between '0001-01-02 00:00Z' and '9999-12-30 00:00Z' then
        raise exception using errcode = 'MP011', message = 'nominal_at must be a time from 0001-01-02 to 9999-12-30';
    end if;
    if traceparent is not null then
        perform milepost.check_traceparents(array[traceparent]);
    end if;
    chosen := milepost.find_version(dag, version);
    if chosen.input_schema is not null and not coalesce(input_checked, false) then
        raise exception using errcode = 'MP011',
            message = format('the DAG %s has a schema for its input, which cannot be checked in SQL', dag), detail = 'schema',
            hint = 'start it with the library, the API or `milepost batch start`; or check the input and pass input_checked => true';
    end if;
    select m.batch_id, m.duplicate, m.due_made into batch_id, duplicate, due_made
    from milepost.make_batch(
        coalesce(id, milepost.uuid_v7()), dag, chosen.id, key, coalesce(input, '{}'), nominal_at, nominal_zone, traceparent, null, null, null, 1) m;
end
$$;

-- Returns a version of a DAG by its digits, or the latest one.
create or replace function milepost.find_version(dag text, version text) returns milepost.dag_version language plpgsql stable as $$
#variable_conflict use_variable
declare
    found_version milepost.dag_version;
begin
    if version is null then
        select v.* into found_version from milepost.dag g join milepost.dag_version v on v.id = g.latest where g.name = dag;
        if not found then
            raise exception using errcode = 'MP010', message = format('there is no DAG %L', dag), detail = 'dag',
                hint = 'define it with `milepost batch define FILE`';
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

-- Creates a batch and its tasks. items_of: the tasks are the items of the list that is the input.
create or replace function milepost.make_batch(
    new_id uuid, of_dag text, of_version bigint, new_key text, new_input jsonb, nominal timestamptz, zone text, trace text, parent uuid, parent_number int,
    of_items int, at_depth int, out batch_id uuid, out duplicate boolean, out due_made int
) language plpgsql
set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set join_collapse_limit = 1 set jit = off as $$
#variable_conflict use_column
declare
    waiting_groups text[];
    waiting int := 0;
    plain int := 0;
    made boolean;
begin
    if of_items is not null then
        due_made := jsonb_array_length(new_input);
    else
        select count(*) filter (where d.pre_cnt > 0), count(*) filter (where d.pre_cnt = 0 and d.plain),
               count(*) filter (where d.pre_cnt = 0 and not d.plain)
        into waiting, plain, due_made
        from milepost.dag_task d where d.version_id = of_version;
    end if;
    loop
        insert into milepost.batch (id, dag, version_id, key, state, waiting, due, active, failed, aborted, succeeded, skipped, canceled,
                                    parent_id, parent_task, items_of, depth, nominal_at, nominal_zone, traceparent)
        values (new_id, of_dag, of_version, new_key, 'running', waiting, due_made, plain, 0, 0, 0, 0, 0, parent, parent_number, of_items, at_depth, nominal,
                case when nominal is not null then coalesce(zone, 'UTC') end, trace)
        on conflict do nothing;
        made := found;
        -- A row that was deleted since the snapshot is visible beside the one that this transaction has created.
        if not milepost.sees_commits() then
            if (select count(*) > 1 from milepost.batch b where b.dag = of_dag and b.key = new_key) then
                perform milepost.refuse_old_snapshot(format('the batch with the key %L', new_key));
            end if;
        end if;
        exit when made;
        -- A separate statement, which sees the row for which the insert waited.
        select b.id into batch_id from milepost.batch b where b.dag = of_dag and b.key = new_key;
        if not found then
            select b.id into batch_id from milepost.batch b where b.id = new_id;
        end if;
        if found then
            perform milepost.confirm_replication();
            due_made := 0;
            duplicate := true;
            return;
        end if;
        -- Retention has deleted the row in the meantime.
    end loop;
    insert into milepost.batch_input (batch_id, input) values (new_id, new_input);
    batch_id := new_id;
    duplicate := false;
    if of_items is not null then
        insert into milepost.batch_task (batch_id, task, pre_cnt, state)
        select new_id, n, 0, 'due' from generate_series(0, jsonb_array_length(new_input) - 1) n;
    else
        insert into milepost.batch_task (batch_id, task, pre_cnt, state, job_id)
        select new_id, d.task, d.pre_cnt,
               case when d.pre_cnt > 0 then 'waiting' when d.plain then 'active' else 'due' end::milepost.task_state,
               case when d.pre_cnt = 0 and d.plain then milepost.uuid_v7() end
        from milepost.dag_task d
        where d.version_id = of_version;
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

-- Creates the jobs of due tasks, with these payloads. Skips tasks that are no longer due, and those of batches that were
-- stopped in the meantime.
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
        where t.state = 'due' and (select b.stop is null from milepost.batch b where b.id = i.batch_id)
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

-- Turns a due task into a run of a bulk job, a batch of a DAG (inner), or a batch over a list (items). Returns the reason if
-- that is not possible; null on success.
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
    if not found or a.stop is not null then
        return null;
    end if;
    if what = 'bulk' then
        begin
            select b.job_id into bulk_job from milepost.start_bulk(name, payload) b;
        exception
            when sqlstate 'MP007' then
                return format('there is no bulk job "%s"; `milepost bulk list` shows the existing ones', name);
            when sqlstate 'MP001' or sqlstate 'MP008' then
                return sqlerrm;
        end;
        -- No other transaction sees this row yet.
        update milepost.job set batch_id = of_batch, task = of_task where id = bulk_job;
        update milepost.batch_task set state = 'active', job_id = bulk_job where batch_id = of_batch and task = of_task;
    else
        if a.depth >= 8 then
            return 'batches would be nested more than 8 levels deep';
        end if;
        if what = 'items' then
            if jsonb_array_length(payload) = 0 then
                perform milepost.settle(array[of_batch], array[of_task], array['succeeded'::milepost.task_state], array['its list is empty']);
                return null;
            end if;
            select * into made from milepost.make_batch(
                milepost.inner_batch_id(of_batch), a.dag, a.version_id, null, payload, a.nominal_at, a.nominal_zone, a.traceparent, of_batch, of_task, of_task, a.depth + 1);
        else
            begin
                inner_version := milepost.find_version(name, null);
            exception when sqlstate 'MP010' then
                return format('there is no DAG "%s"; `milepost batch list --dags` shows the existing ones', name);
            end;
            select * into made from milepost.make_batch(
                milepost.inner_batch_id(of_batch), name, inner_version.id, null, payload, a.nominal_at, a.nominal_zone, a.traceparent, of_batch, of_task, null, a.depth + 1);
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

-- Returns the output of a child batch for the successors of its task: for a list, the results of the items in order; for a
-- DAG, the results of the tasks without successors, by key.
create or replace function milepost.batch_output(of_batch uuid) returns jsonb language sql stable as $$
    select case when a.items_of is not null then
        (select jsonb_agg(e.result order by t.task)
         from milepost.batch_task t left join milepost.ended e on e.id = t.job_id where t.batch_id = a.id)
    else
        (select jsonb_object_agg(d.key, case when t.child_id is null then coalesce(e.result, w.output) else milepost.batch_output(t.child_id) end)
         from milepost.dag_task d
         join milepost.batch_task t on t.batch_id = a.id and t.task = d.task
         left join milepost.ended e on e.id = t.job_id
         left join milepost.batch_wait w on t.job_id is null and w.batch_id = t.batch_id and w.task = t.task
         where d.version_id = a.version_id and d.successors = '{}')
    end
    from milepost.batch a where a.id = of_batch
$$;

-- Returns the size of that output as text.
create or replace function milepost.batch_output_bytes(of_batch uuid) returns bigint language sql stable as $$
    select coalesce(sum(case when t.child_id is null then octet_length(coalesce(e.result, w.output)::text)::bigint
                             else milepost.batch_output_bytes(t.child_id) end), 0)::bigint
    from milepost.batch_task t
    left join milepost.ended e on e.id = t.job_id
    left join milepost.batch_wait w on t.job_id is null and w.batch_id = t.batch_id and w.task = t.task
    where t.batch_id = of_batch
$$;

-- Runs with the rights of its owner, so that an application needs no rights on tables; executable only by roles that are
-- granted it.
revoke execute on function milepost.begin_batch from public;
