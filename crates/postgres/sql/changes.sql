-- State changes as events. Not public. Triggers on the histories emit an event for every change that a subscription selects,
-- in the same transaction and after the statement, for changes of any origin: at most one for each entry. The triggers are
-- created with the first source and dropped with the last one, since for a disabled trigger PostgreSQL still collects the
-- rows of every statement.
--
-- The heads are locked last, and only by transactions that already hold the row of the job or the batch. Therefore no
-- transaction waits for a head, and the order of locks is that of the rows.

-- Formats a time as the library does.
create or replace function milepost.time_text(at timestamptz) returns text language sql stable as $$
    select to_char(at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
$$;

-- Returns the number after which an aggregate continues if its head was deleted with an earlier job of the same ID: that of
-- its last event. 0 if the head exists.
create or replace function milepost.last_seq_logged(of_type text, of_id text) returns bigint language sql stable as $$
    select case when exists (select from milepost.aggregate a where a.aggregate_type = of_type and a.aggregate_id = of_id) then 0
           else coalesce((select max(e.aggregate_seq) from milepost.event e where e.aggregate_type = of_type and e.aggregate_id = of_id), 0) end
$$;

-- Fails if a trigger function with its owner's rights was attached to another table: the columns of that table could have
-- types with casts and operators of the table's owner.
create or replace function milepost.refuse_other_table(relation oid, expected regclass) returns void language plpgsql
set search_path = pg_catalog, pg_temp as $$
begin
    if relation <> expected then
        raise exception using errcode = 'insufficient_privilege', message = format('this trigger is for %s only', expected);
    end if;
end
$$;

-- Runs with its owner's rights: roles that change jobs need no right to write events.
create or replace function milepost.record_job_changes() returns trigger language plpgsql security definer
set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set join_collapse_limit = 1 set jit = off as $$
declare
    -- Read once, so that all statements below use the same list.
    wanted text[] := array(select distinct s.name from milepost.change_source s where s.what = 'kind');
begin
    perform milepost.refuse_other_table(tg_relid, 'milepost.history');
    if wanted = '{}' then
        return null;
    end if;
    insert into milepost.aggregate as a (aggregate_type, aggregate_id, last_seq, slot)
    select c.type, c.id, c.changes + milepost.last_seq_logged(c.type, c.id), milepost.slot_of(c.type, c.id)
    from (
        select 'milepost.job.' || j.kind as type, h.job_id::text as id, count(*) as changes
        from changed h
        cross join lateral (select * from milepost.job j where j.id = h.job_id offset 0) j
        where j.kind = any (wanted)
        group by j.kind, h.job_id
        order by 1, 2
    ) c
    on conflict (aggregate_type, aggregate_id) do update set last_seq = a.last_seq + excluded.last_seq;

    insert into milepost.event (slot, event_id, aggregate_type, aggregate_id, aggregate_seq, event_type, payload)
    select a.slot, milepost.uuid_v7(), c.type, c.job_id::text, a.last_seq - c.behind, 'milepost.job.' || c.to_state,
           json_strip_nulls(json_build_object(
               'job_id', c.job_id, 'kind', c.kind, 'queue', c.queue, 'key', c.key, 'batch_id', c.batch_id, 'task', t.key,
               'verb', c.verb, 'from', c.from_state, 'to', c.to_state, 'attempt', c.attempt, 'run_token', c.token, 'worker_id', c.worker_id,
               'ready_at', milepost.time_text(c.ready_at), 'error_code', c.error_code, 'error_message', c.error_message, 'note', c.note,
               'at', milepost.time_text(c.at)))
    from (
        select h.*, j.kind, j.queue, j.key, j.batch_id, j.task, 'milepost.job.' || j.kind as type,
               row_number() over (partition by h.job_id order by h.pos desc) - 1 as behind
        from changed h
        cross join lateral (select * from milepost.job j where j.id = h.job_id offset 0) j
        where j.kind = any (wanted)
    ) c
    cross join lateral (
        select * from milepost.aggregate a where a.aggregate_type = c.type and a.aggregate_id = c.job_id::text offset 0
    ) a
    left join lateral (
        select coalesce(d.key, c.task::text) as key
        from milepost.batch b
        left join milepost.dag_task d on b.items_of is null and d.version_id = b.version_id and d.task = c.task
        where b.id = c.batch_id and c.task is not null
        offset 0
    ) t on true
    order by c.pos;
    if found then
        perform milepost.wake_relay();
    end if;
    return null;
end
$$;

-- The same for batches; changes of their tasks are not included.
create or replace function milepost.record_batch_changes() returns trigger language plpgsql security definer
set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off
set join_collapse_limit = 1 set jit = off as $$
declare
    wanted text[] := array(select distinct s.name from milepost.change_source s where s.what = 'dag');
begin
    perform milepost.refuse_other_table(tg_relid, 'milepost.batch_history');
    if wanted = '{}' then
        return null;
    end if;
    insert into milepost.aggregate as a (aggregate_type, aggregate_id, last_seq, slot)
    select c.type, c.id, c.changes + milepost.last_seq_logged(c.type, c.id), milepost.slot_of(c.type, c.id)
    from (
        select 'milepost.batch.' || b.dag as type, h.batch_id::text as id, count(*) as changes
        from changed h
        cross join lateral (select * from milepost.batch b where b.id = h.batch_id offset 0) b
        where b.dag = any (wanted) and h.task is null and h.key is null
        group by b.dag, h.batch_id
        order by 1, 2
    ) c
    on conflict (aggregate_type, aggregate_id) do update set last_seq = a.last_seq + excluded.last_seq;

    insert into milepost.event (slot, event_id, aggregate_type, aggregate_id, aggregate_seq, event_type, payload)
    select a.slot, milepost.uuid_v7(), c.type, c.batch_id::text, a.last_seq - c.behind, 'milepost.batch.' || c.to_state,
           json_strip_nulls(json_build_object(
               'batch_id', c.batch_id, 'dag', c.dag, 'version', v.version, 'biz_key', c.biz_key, 'parent_id', c.parent_id,
               'verb', c.verb, 'from', c.from_state, 'to', c.to_state, 'note', c.note, 'at', milepost.time_text(c.at)))
    from (
        select h.*, b.dag, b.version_id, b.key as biz_key, b.parent_id, 'milepost.batch.' || b.dag as type,
               row_number() over (partition by h.batch_id order by h.pos desc) - 1 as behind
        from changed h
        cross join lateral (select * from milepost.batch b where b.id = h.batch_id offset 0) b
        where b.dag = any (wanted) and h.task is null and h.key is null
    ) c
    cross join lateral (
        select * from milepost.aggregate a where a.aggregate_type = c.type and a.aggregate_id = c.batch_id::text offset 0
    ) a
    left join lateral (select v.version from milepost.dag_version v where v.id = c.version_id offset 0) v on true
    order by c.pos;
    if found then
        perform milepost.wake_relay();
    end if;
    return null;
end
$$;

-- Sets the kinds of jobs and the DAGs whose changes a subscription selects. The caller then calls switch_recording.
create or replace function milepost.want_changes(of_subscription text, kinds text[], dags text[]) returns void language plpgsql as $$
begin
    perform milepost.check_subscription(of_subscription);
    delete from milepost.change_source s
    where s.subscription = of_subscription and s.name <> all (case s.what when 'kind' then kinds else dags end);
    insert into milepost.change_source (what, name, subscription)
    select 'kind', k.name, of_subscription from unnest(kinds) k(name)
    union all
    select 'dag', d.name, of_subscription from unnest(dags) d(name)
    on conflict do nothing;
end
$$;

-- Creates the trigger that records changes of jobs ('kind') or batches ('dag') if a subscription selects some, and drops it
-- otherwise. Returns false if transactions that hold the history prevent that: other transactions wait behind this one at
-- most for the lock timeout, and the function must be called again. One table per transaction, so that a transaction that
-- waits for one table holds no other.
-- Runs as the owner of the tables, so that relays need not own them. Advisory lock: (19799, 0) one switch at a time.
create or replace function milepost.switch_recording(what text) returns boolean language plpgsql security definer
set search_path = pg_catalog, pg_temp set lock_timeout = '100ms' as $$
declare
    history regclass := case switch_recording.what when 'kind' then 'milepost.history' else 'milepost.batch_history' end;
    is_wanted boolean;
    is_recorded boolean;
begin
    if switch_recording.what is null or switch_recording.what not in ('kind', 'dag') then
        raise exception using errcode = 'invalid_parameter_value', message = 'only changes of jobs (kind) and of batches (dag) can be recorded';
    end if;
    -- The last one of concurrent calls sees what all of them have written.
    perform pg_advisory_xact_lock(19799, 0);
    is_wanted := exists (select from milepost.change_source s where s.what = switch_recording.what);
    is_recorded := exists (select from pg_trigger t where t.tgrelid = history and t.tgname = 'recording');
    if is_wanted and not is_recorded then
        execute format('create trigger recording after insert on %s referencing new table as changed
                        for each statement execute function milepost.%I()',
                       history, case switch_recording.what when 'kind' then 'record_job_changes' else 'record_batch_changes' end);
    elsif is_recorded and not is_wanted then
        execute format('drop trigger recording on %s', history);
    end if;
    return true;
exception when lock_not_available then
    return false;
end
$$;

-- Run with the rights of their owner, and are executable only by roles that are granted them; triggers need no grant.
revoke execute on function milepost.record_job_changes(), milepost.record_batch_changes(), milepost.switch_recording(text) from public;
