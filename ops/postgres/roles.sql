-- Roles of least privilege. Run in the store's database after `milepost migrate`, the first time as a superuser, and again after every
-- migration, then as a superuser or as milepost_migrator; what is granted already stays as it is.
--
--   psql -v ON_ERROR_STOP=1 -f ops/postgres/roles.sql postgres://…/milepost
--
-- The first time it makes the roles, without passwords (`alter role milepost_server password '…'`), and gives what `milepost migrate` made to
-- milepost_migrator, who migrates from then on. Every table is named here once and for all: a test fails for one
-- that is not.

begin;

-- Nobody else gets in between, nor makes the same role at the same time in another database.
select pg_advisory_xact_lock(19792, 3);

do $$
declare
    role text;
begin
    foreach role in array array['milepost_migrator', 'milepost_server', 'milepost_worker', 'milepost_app', 'milepost_reader'] loop
        if not exists (select from pg_catalog.pg_roles r where r.rolname = role) then
            begin
                execute format('create role %I login', role);
            exception when duplicate_object or unique_violation then
                null;
            end;
        end if;
    end loop;
end
$$;

-- Interrupting a bulk run needs the right to signal the worker's session. Each in a block of its own: what is refused takes back no more than
-- its block has done.
do $$
begin
    if not pg_has_role('milepost_server', 'milepost_worker', 'member') then
        grant milepost_worker to milepost_server;
    end if;
exception when insufficient_privilege then
    raise warning 'not granted: %; a superuser has to run this file once', sqlerrm;
end
$$;

-- Knowing what holds a bulk run back needs to see all sessions.
do $$
begin
    if not pg_has_role('milepost_worker', 'pg_read_all_stats', 'member') then
        grant pg_read_all_stats to milepost_worker;
    end if;
exception when insufficient_privilege then
    raise warning 'not granted: %; a superuser has to run this file once', sqlerrm;
end
$$;

-- The migrator owns the schema and all that is in it.
do $$
declare
    what record;
begin
    if not has_database_privilege('milepost_migrator', current_database(), 'create') then
        execute format('grant create on database %I to milepost_migrator', current_database());
    end if;
    for what in
        select format('schema milepost') as named from pg_catalog.pg_namespace
        where nspname = 'milepost' and nspowner <> 'milepost_migrator'::regrole
        union all
        select format(case c.relkind when 'v' then 'view milepost.%I' when 'S' then 'sequence milepost.%I' else 'table milepost.%I' end, c.relname)
        from pg_catalog.pg_class c
        where c.relnamespace = 'milepost'::regnamespace and c.relowner <> 'milepost_migrator'::regrole and c.relkind in ('r', 'v', 'S')
          -- A column's own sequence goes with its table.
          and not exists (select from pg_catalog.pg_depend d where d.objid = c.oid and d.classid = 'pg_class'::regclass and d.deptype = 'i')
        union all
        select format('routine %s', p.oid::regprocedure) from pg_catalog.pg_proc p
        where p.pronamespace = 'milepost'::regnamespace and p.proowner <> 'milepost_migrator'::regrole
        union all
        select format('type milepost.%I', t.typname) from pg_catalog.pg_type t
        where t.typnamespace = 'milepost'::regnamespace and t.typtype = 'e' and t.typowner <> 'milepost_migrator'::regrole
    loop
        execute format('alter %s owner to milepost_migrator', what.named);
    end loop;
end
$$;

-- What was granted before and is not granted here any more is revoked.
revoke all on all tables in schema milepost from milepost_server, milepost_worker, milepost_app, milepost_reader;
revoke all on all sequences in schema milepost from milepost_server, milepost_worker, milepost_app, milepost_reader;
revoke execute on all functions in schema milepost from milepost_server, milepost_worker, milepost_app, milepost_reader;

-- Most functions have the rights of their caller: rights on tables decide what they can do. Those below have the rights of their owner, with a
-- pinned search_path, and nobody else may execute them.
revoke execute on function
    milepost.enqueue_many, milepost.start_bulk, milepost.begin_batch, milepost.emit_many,
    milepost.once, milepost.receive, milepost.next_parked, milepost.expect_from, milepost.put_consumer, milepost.inbox_ready,
    milepost.give_up_gaps, milepost.prune_audit, milepost.touch_token, milepost.switch_recording
    from public;
-- How work and events come in: all that an application may change. enqueue, start_batch and emit call these.
grant execute on function
    milepost.enqueue_many, milepost.start_bulk, milepost.begin_batch, milepost.emit_many,
    milepost.once, milepost.receive, milepost.next_parked, milepost.expect_from, milepost.put_consumer, milepost.inbox_ready,
    milepost.give_up_gaps
    to milepost_server, milepost_worker, milepost_app;
-- Retention of the audit, and the use of tokens.
grant execute on function milepost.prune_audit, milepost.touch_token to milepost_server, milepost_worker;
-- Relays.
grant execute on function milepost.switch_recording to milepost_server;
grant usage on schema milepost to milepost_server, milepost_worker, milepost_app, milepost_reader;

-- Tables of later migrations, until this file is run again and says more: the server's only.
alter default privileges for role milepost_migrator in schema milepost grant select, insert, update, delete on tables to milepost_server;
alter default privileges for role milepost_migrator in schema milepost grant usage, select on sequences to milepost_server;

-- Which version this is, which transitions there are, what comes from another store: nobody but the migrator changes it.
grant select on milepost.schema_migration, milepost.transition, milepost.arrival, milepost.arrival_part
    to milepost_server, milepost_worker, milepost_reader;

-- Who may ask: the server alone says it. A worker that tells its numbers (`milepost serve --only work`) looks up who asks for them; what it
-- finds are digests, of which no token can be made.
grant select, insert, update, delete on milepost.access_token, milepost.console_session to milepost_server;
grant select on milepost.access_token to milepost_worker;

-- What people did is added to, with the time and the number that the database gives it, and deleted by prune_audit only. A trigger refuses
-- changes of entries, and deletions of young ones, whoever has the right.
grant insert (who, what, subject, why, detail) on milepost.audit to milepost_server, milepost_worker;
grant select on milepost.audit to milepost_server, milepost_reader;

-- Jobs, limits, schedules, bulk jobs, batches, events, inboxes.
grant select, insert, update, delete on
    milepost.job, milepost.job_key, milepost.live, milepost.ended, milepost.history, milepost.progress, milepost.worker, milepost.queue,
    milepost.group_slot, milepost.schedule, milepost.kind_limit, milepost.group_limit, milepost.group_bucket, milepost.group_note,
    milepost.turn,
    milepost.bulk_definition, milepost.bulk, milepost.bulk_setting, milepost.bulk_failure, milepost.bulk_file, milepost.bulk_target,
    milepost.dag_version, milepost.dag, milepost.dag_task, milepost.batch, milepost.batch_input, milepost.batch_task,
    milepost.batch_spread, milepost.batch_history,
    milepost.aggregate, milepost.event, milepost.log_prune,
    milepost.inbox_consumer, milepost.processed_event, milepost.aggregate_checkpoint, milepost.inbox_parked, milepost.inbox_dead,
    milepost.inbox_tally
    to milepost_server, milepost_worker;

-- The relay.
grant select, insert, update, delete on
    milepost.subscription, milepost.publisher, milepost.subscription_slot, milepost.slot_position, milepost.parked_aggregate,
    milepost.parked_event, milepost.dead_event, milepost.change_source
    to milepost_server;
grant select on
    milepost.subscription, milepost.publisher, milepost.subscription_slot, milepost.slot_position, milepost.parked_aggregate,
    milepost.parked_event, milepost.dead_event, milepost.change_source
    to milepost_worker;

-- Relays and streams begin a new epoch after a crash; workers note a promotion of the server.
grant select, insert, update on milepost.epoch to milepost_server, milepost_worker;
grant select, insert on milepost.timeline to milepost_server, milepost_worker;
grant select on milepost.epoch, milepost.timeline to milepost_reader;

grant select on milepost.attempt, milepost.subscription_place, milepost.running_epoch to milepost_server, milepost_worker, milepost_reader;
grant usage, select on all sequences in schema milepost to milepost_server, milepost_worker;
grant select on all sequences in schema milepost to milepost_reader;

-- An application changes nothing but by the functions above. It sees where jobs and batches stand, and what DAGs and bulk jobs there are:
-- neither payloads, results and inputs nor events and inboxes.
grant select on milepost.schema_migration, milepost.job_key, milepost.live, milepost.batch, milepost.batch_task,
    milepost.dag, milepost.dag_version, milepost.dag_task, milepost.bulk_definition to milepost_app;

-- Who only looks.
grant select on
    milepost.job, milepost.job_key, milepost.live, milepost.ended, milepost.history, milepost.progress, milepost.worker, milepost.queue,
    milepost.group_slot, milepost.schedule, milepost.kind_limit, milepost.group_limit, milepost.group_bucket, milepost.group_note,
    milepost.turn,
    milepost.bulk_definition, milepost.bulk, milepost.bulk_setting, milepost.bulk_failure, milepost.bulk_file, milepost.bulk_target,
    milepost.dag_version, milepost.dag, milepost.dag_task, milepost.batch, milepost.batch_input, milepost.batch_task,
    milepost.batch_spread, milepost.batch_history,
    milepost.aggregate, milepost.event, milepost.log_prune,
    milepost.inbox_consumer, milepost.processed_event, milepost.aggregate_checkpoint, milepost.inbox_parked, milepost.inbox_dead,
    milepost.inbox_tally,
    milepost.subscription, milepost.publisher, milepost.subscription_slot, milepost.slot_position, milepost.parked_aggregate,
    milepost.parked_event, milepost.dead_event, milepost.change_source
    to milepost_reader;

commit;
