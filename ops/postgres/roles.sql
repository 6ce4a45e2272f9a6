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

-- What was granted before and stands here no more goes. Functions have the rights of who calls them, so that tables decide; the one that
-- has its owner's is for relays.
revoke all on all tables in schema milepost from milepost_server, milepost_worker, milepost_app, milepost_reader;
revoke all on all sequences in schema milepost from milepost_server, milepost_worker, milepost_app, milepost_reader;
revoke execute on function milepost.switch_recording(text) from public;
grant execute on function milepost.switch_recording(text) to milepost_server;
grant usage on schema milepost to milepost_server, milepost_worker, milepost_app, milepost_reader;

-- Tables of later migrations, until this file is run again and says more: the server's only.
alter default privileges for role milepost_migrator in schema milepost grant select, insert, update, delete on tables to milepost_server;
alter default privileges for role milepost_migrator in schema milepost grant usage, select on sequences to milepost_server;

-- Which version this is, which transitions there are, what comes from another store: nobody but the migrator changes it.
grant select on milepost.schema_migration, milepost.transition, milepost.arrival, milepost.arrival_part
    to milepost_server, milepost_worker, milepost_reader;

-- Who may ask: the server alone says it. A worker that tells its numbers (`milepost serve --only work`) looks up who asks for them, and
-- notes when; what it finds are digests, of which no token can be made.
grant select, insert, update, delete on milepost.access_token, milepost.console_session to milepost_server;
grant select, update (last_used_at) on milepost.access_token to milepost_worker;

-- What people did is added to, and forgotten after its time; nobody rewrites it. What is to be forgotten is locked first, which takes the
-- right to update a column: this one cannot be given a value.
grant select, insert, delete, update (pos) on milepost.audit to milepost_server;
grant insert, delete, select (pos, at), update (pos) on milepost.audit to milepost_worker;
grant select on milepost.audit to milepost_reader;

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

-- Relays and streams begin a new epoch after a crash.
grant select, insert, update on milepost.epoch to milepost_server, milepost_worker;
grant select on milepost.epoch to milepost_reader;

grant select on milepost.attempt, milepost.subscription_place, milepost.running_epoch to milepost_server, milepost_worker, milepost_reader;
grant usage, select on all sequences in schema milepost to milepost_server, milepost_worker;
grant select on all sequences in schema milepost to milepost_reader;

-- An application makes jobs, batches and events, and takes events in: it sees where things stand, and neither payloads nor results of
-- others' jobs. It deletes no job and writes no end, so that it cancels none.
grant select on milepost.schema_migration, milepost.dag, milepost.dag_version, milepost.dag_task, milepost.bulk_definition,
    milepost.group_limit, milepost.kind_limit, milepost.change_source to milepost_app;
grant insert on milepost.job, milepost.history to milepost_app;
grant select, insert on milepost.job_key to milepost_app;
grant select, insert, update (ready_at, due_at, timed, state) on milepost.live to milepost_app;
grant select, insert on milepost.group_slot to milepost_app;
grant select, insert, update on milepost.group_bucket to milepost_app;
grant select, insert, delete on milepost.group_note to milepost_app;
grant usage on milepost.group_slot_beyond to milepost_app;
grant insert on milepost.batch_input, milepost.batch_history to milepost_app;
grant select, insert on milepost.batch to milepost_app;
grant select, insert on milepost.batch_task to milepost_app;
grant insert (job_id, origin) on milepost.bulk to milepost_app;
-- Events are compared with what is repeated, which takes reading them; each application's consumers are its own affair.
grant select, insert, update on milepost.aggregate to milepost_app;
grant select, insert on milepost.event to milepost_app;
grant select, insert, update on milepost.inbox_consumer, milepost.aggregate_checkpoint, milepost.inbox_tally to milepost_app;
grant select, insert on milepost.processed_event to milepost_app;
grant select, insert, update, delete on milepost.inbox_parked, milepost.inbox_dead to milepost_app;

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
