-- Roles with least privilege. Run this file in the store's database after `milepost migrate`, the first time as a superuser.
-- Run it again after every migration, as a superuser or as milepost_migrator; existing grants stay as they are.
--
--   psql -v ON_ERROR_STOP=1 -f ops/postgres/roles.sql postgres://…/milepost
--
-- The first run creates the roles, without passwords (`alter role milepost_server password '…'`), and makes
-- milepost_migrator the owner of everything that `milepost migrate` created; run all later migrations as milepost_migrator.
-- Every table is listed in this file; a test fails for a table that is not.

begin;

-- A function or operator that another account made in a schema of the search path must not take the place of PostgreSQL's.
set local search_path = pg_catalog, pg_temp;

-- Excludes concurrent migrations and concurrent runs of this file in this database. If the same role is created in another
-- database at the same time, the error is ignored below.
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

-- Interrupting a bulk run requires the right to signal the worker's session. Each grant is in a separate block: if it is
-- refused, only that block is undone.
do $$
begin
    if not pg_has_role('milepost_server', 'milepost_worker', 'member') then
        grant milepost_worker to milepost_server;
    end if;
exception when insufficient_privilege then
    raise warning 'not granted: %; a superuser has to run this file once', sqlerrm;
end
$$;

-- Finding the sessions that hold back a bulk run requires the right to see all sessions.
do $$
begin
    if not pg_has_role('milepost_worker', 'pg_read_all_stats', 'member') then
        grant pg_read_all_stats to milepost_worker;
    end if;
exception when insufficient_privilege then
    raise warning 'not granted: %; a superuser has to run this file once', sqlerrm;
end
$$;

-- The migrator owns the schema and all objects in it.
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
          -- The sequence of an identity column belongs to its table.
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

-- Revokes earlier grants that are no longer in this file.
revoke all on all tables in schema milepost from milepost_server, milepost_worker, milepost_app, milepost_reader;
revoke all on all sequences in schema milepost from milepost_server, milepost_worker, milepost_app, milepost_reader;
revoke execute on all functions in schema milepost from milepost_server, milepost_worker, milepost_app, milepost_reader;

-- Most functions run with the rights of their caller: the rights on tables decide what they can do. The following functions
-- run with the rights of their owner and a pinned search_path, and only the roles below may execute them.
revoke execute on function
    milepost.enqueue_many, milepost.enqueue_many_by_key, milepost.start_bulk, milepost.begin_batch, milepost.signal, milepost.signal_by_key, milepost.emit_many,
    milepost.once, milepost.receive, milepost.next_parked, milepost.expect_from, milepost.put_consumer, milepost.inbox_ready,
    milepost.give_up_gaps, milepost.prune_audit, milepost.touch_token, milepost.switch_recording
    from public;
-- Enqueueing jobs, starting bulk jobs and batches, and emitting and receiving events: all changes that an application may
-- make. enqueue, start_batch and emit call these functions.
grant execute on function
    milepost.enqueue_many, milepost.enqueue_many_by_key, milepost.start_bulk, milepost.begin_batch, milepost.signal, milepost.signal_by_key, milepost.emit_many,
    milepost.once, milepost.receive, milepost.next_parked, milepost.expect_from, milepost.put_consumer, milepost.inbox_ready,
    milepost.give_up_gaps
    to milepost_server, milepost_worker, milepost_app;
-- Retention of the audit log, and recording the use of tokens.
grant execute on function milepost.prune_audit, milepost.touch_token to milepost_server, milepost_worker;
-- Relays.
grant execute on function milepost.switch_recording to milepost_server;
grant usage on schema milepost to milepost_server, milepost_worker, milepost_app, milepost_reader;

-- Tables of later migrations: only the server has access until this file is run again.
alter default privileges for role milepost_migrator in schema milepost grant select, insert, update, delete on tables to milepost_server;
alter default privileges for role milepost_migrator in schema milepost grant usage, select on sequences to milepost_server;

-- Schema version, transitions, and imports from another store: only the migrator changes them.
grant select on milepost.schema_migration, milepost.transition, milepost.arrival, milepost.arrival_part
    to milepost_server, milepost_worker, milepost_reader;

-- Access tokens: only the server changes them. A worker that serves its metrics (`milepost serve --only work`) checks the
-- tokens of its clients; it can read only digests, from which no token can be derived.
grant select, insert, update, delete on milepost.access_token, milepost.console_session, milepost.console_sign_in
    to milepost_server;
grant select on milepost.access_token to milepost_worker;

-- Alerts: only servers record them and send messages about them.
grant select, insert, update, delete on
    milepost.alert_incident, milepost.alert_notice, milepost.alert_silence, milepost.alert_target
    to milepost_server;
grant select on
    milepost.alert_incident, milepost.alert_notice, milepost.alert_silence, milepost.alert_target
    to milepost_worker, milepost_reader;

-- The audit log: entries are inserted with the time and number that the database assigns, and deleted by prune_audit only. A
-- trigger refuses updates of entries and deletions of young ones, regardless of privileges.
grant insert (who, what, subject, why, detail) on milepost.audit to milepost_server, milepost_worker;
grant select on milepost.audit to milepost_server, milepost_reader;

-- Jobs, limits, schedules, bulk jobs, batches, events, inboxes.
grant select, insert, update, delete on
    milepost.job, milepost.job_key, milepost.live, milepost.ended, milepost.history, milepost.progress, milepost.worker, milepost.queue,
    milepost.group_slot, milepost.schedule, milepost.kind_limit, milepost.group_limit, milepost.group_bucket, milepost.group_note,
    milepost.turn, milepost.retention_setting, milepost.rollup, milepost.rollup_position,
    milepost.bulk_definition, milepost.bulk, milepost.bulk_setting, milepost.bulk_failure, milepost.bulk_file, milepost.bulk_target,
    milepost.dag_version, milepost.dag, milepost.dag_task, milepost.batch, milepost.batch_input, milepost.batch_task,
    milepost.batch_spread, milepost.batch_history, milepost.batch_wait, milepost.batch_signal,
    milepost.aggregate, milepost.event, milepost.log_prune,
    milepost.inbox_consumer, milepost.processed_event, milepost.aggregate_checkpoint, milepost.inbox_parked, milepost.inbox_dead,
    milepost.inbox_tally
    to milepost_server, milepost_worker;

-- The relay.
grant select, insert, update, delete on
    milepost.subscription, milepost.publisher, milepost.subscription_slot, milepost.slot_position, milepost.parked_aggregate,
    milepost.parked_event, milepost.dead_event, milepost.event_work, milepost.change_source
    to milepost_server;
grant select on
    milepost.subscription, milepost.publisher, milepost.subscription_slot, milepost.slot_position, milepost.parked_aggregate,
    milepost.parked_event, milepost.dead_event, milepost.change_source
    to milepost_worker;
-- Workers prune the log.
grant select, delete on milepost.event_work to milepost_worker;

-- Relays and streams begin a new epoch after a crash; workers record a promotion of the server.
grant select, insert, update on milepost.epoch to milepost_server, milepost_worker;
grant select, insert on milepost.timeline to milepost_server, milepost_worker;
grant select on milepost.epoch, milepost.timeline to milepost_reader;

grant select on milepost.attempt, milepost.subscription_place, milepost.running_epoch to milepost_server, milepost_worker, milepost_reader;
grant usage, select on all sequences in schema milepost to milepost_server, milepost_worker;
grant select on all sequences in schema milepost to milepost_reader;

-- An application makes changes only by the functions above. It can read the states of jobs and batches and the definitions of
-- DAGs and bulk jobs, from which the library starts them, but no payloads of jobs, results, inputs, events or inboxes.
grant select on milepost.schema_migration, milepost.job_key, milepost.live, milepost.batch, milepost.batch_task,
    milepost.dag, milepost.dag_version, milepost.dag_task, milepost.bulk_definition to milepost_app;

-- Read-only users.
grant select on
    milepost.job, milepost.job_key, milepost.live, milepost.ended, milepost.history, milepost.progress, milepost.worker, milepost.queue,
    milepost.group_slot, milepost.schedule, milepost.kind_limit, milepost.group_limit, milepost.group_bucket, milepost.group_note,
    milepost.turn, milepost.retention_setting, milepost.rollup, milepost.rollup_position,
    milepost.bulk_definition, milepost.bulk, milepost.bulk_setting, milepost.bulk_failure, milepost.bulk_file, milepost.bulk_target,
    milepost.dag_version, milepost.dag, milepost.dag_task, milepost.batch, milepost.batch_input, milepost.batch_task,
    milepost.batch_spread, milepost.batch_history, milepost.batch_wait, milepost.batch_signal,
    milepost.aggregate, milepost.event, milepost.log_prune,
    milepost.inbox_consumer, milepost.processed_event, milepost.aggregate_checkpoint, milepost.inbox_parked, milepost.inbox_dead,
    milepost.inbox_tally,
    milepost.subscription, milepost.publisher, milepost.subscription_slot, milepost.slot_position, milepost.parked_aggregate,
    milepost.parked_event, milepost.dead_event, milepost.event_work, milepost.change_source
    to milepost_reader;

commit;
