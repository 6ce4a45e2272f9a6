-- Imports from another store (moves). Not public. SQLSTATEs: MP004 the store is being filled; MP005 the store is not empty;
-- MP006 the move is not in progress.

-- Refuses all changes of a table, except those of the move in the first argument; the second one is the source. The error
-- does not contain the ID of the move, since a client that knows it could bypass this check.
create or replace function milepost.refuse_while_moving() returns trigger language plpgsql as $$
begin
    if current_setting('milepost.move', true) is distinct from tg_argv[0] then
        raise exception using errcode = 'MP004', message = format(
            'this store is being filled from %s; use it when `milepost move` has finished', tg_argv[1]);
    end if;
    return null;
end
$$;

-- Converts the key of a bulk job's target from a SQLite store, each value to the text that PostgreSQL parses as its type. A
-- blob is {"$blob": "hex"} there and becomes the text of a bytea; an infinite number is {"$real": "inf"}.
create or replace function milepost.key_of_texts(key jsonb) returns jsonb language sql immutable strict as $$
    select coalesce(jsonb_agg(
        case when jsonb_typeof(v) = 'object' then coalesce(E'\\x' || (v ->> '$blob'), v ->> '$real') else v #>> '{}' end order by n), '[]')
    from jsonb_array_elements(key) with ordinality e(v, n)
$$;

-- Returns the tables that a move fills, and those that depend on them. Leaves out the tables that describe the database
-- itself.
create or replace function milepost.moved_tables() returns setof text language sql stable as $$
    select c.relname::text from pg_catalog.pg_class c
    where c.relnamespace = 'milepost'::regnamespace and c.relkind = 'r'
      and c.relname not in ('schema_migration', 'transition', 'arrival', 'arrival_part', 'epoch', 'timeline')
    order by c.relname
$$;

-- Returns the tables that contain rows in an empty store.
create or replace function milepost.standing_tables() returns text[] language sql immutable as $$
    select array['log_prune', 'turn']
$$;

-- Begins a move of these parts into an empty store. The triggers are created first, which waits for transactions that write.
create or replace function milepost.begin_move(move uuid, source text, parts text[]) returns void language plpgsql
set lock_timeout = '10s' as $$
declare
    moved text;
    holds boolean;
begin
    for moved in select milepost.moved_tables() loop
        if exists (select from milepost.arrival) then
            raise exception using errcode = 'MP005', message = 'it is or was the target of a move';
        end if;
        execute format('create trigger moving before insert or update or delete or truncate on milepost.%I
                        for each statement execute function milepost.refuse_while_moving(%L, %L)', moved, move, source);
        if moved <> all (milepost.standing_tables()) then
            execute format('select exists (select from milepost.%I)', moved) into holds;
            if holds then
                raise exception using errcode = 'MP005', message = format('it has rows of table %s', moved);
            end if;
        end if;
    end loop;
    insert into milepost.arrival (move_id, source) values (move, source);
    insert into milepost.arrival_part (move_id, part, position, rows, done)
    select move, p, '"start"', 0, false from unnest(parts) p;
end
$$;

-- Opens the tables for all clients again.
create or replace function milepost.open_after_move() returns void language plpgsql set lock_timeout = '10s' as $$
declare
    moved text;
begin
    for moved in select milepost.moved_tables() loop
        execute format('drop trigger if exists moving on milepost.%I', moved);
    end loop;
end
$$;

-- Completes a move: sequences continue above the imported values, and groups are checked. worker_last: the highest ID of a
-- worker.
create or replace function milepost.complete_move(move uuid, worker_last int, made_by text) returns void
language plpgsql as $$
declare
    from_store text;
begin
    update milepost.arrival set completed_at = now() where move_id = move and completed_at is null
    returning source into from_store;
    if not found or exists (select from milepost.arrival_part p where p.move_id = move and not p.done) then
        raise exception using errcode = 'MP006', message = format('move %s is not in progress', move);
    end if;
    perform milepost.open_after_move();
    perform setval(pg_get_serial_sequence('milepost.history', 'pos'), last)
    from (select max(pos) as last from milepost.history) h where last > 0;
    perform setval(pg_get_serial_sequence('milepost.audit', 'pos'), last)
    from (select max(pos) as last from milepost.audit) a where last > 0;
    perform setval(pg_get_serial_sequence('milepost.bulk_failure', 'pos'), last)
    from (select max(pos) as last from milepost.bulk_failure) f where last > 0;
    perform setval(pg_get_serial_sequence('milepost.dag_version', 'id'), last)
    from (select max(id) as last from milepost.dag_version) v where last > 0;
    perform setval(pg_get_serial_sequence('milepost.batch_spread', 'pos'), last)
    from (select max(pos) as last from milepost.batch_spread) s where last > 0;
    perform setval(pg_get_serial_sequence('milepost.batch_history', 'pos'), last)
    from (select max(pos) as last from milepost.batch_history) h where last > 0;
    perform setval(pg_get_serial_sequence('milepost.batch_signal', 'pos'), last)
    from (select max(pos) as last from milepost.batch_signal) s where last > 0;
    perform setval(pg_get_serial_sequence('milepost.event', 'pos'), last)
    -- Retention may have deleted the last events: new events must be above the positions of all subscriptions.
    from (select greatest((select max(pos) from milepost.event), (select max(floor) from milepost.slot_position)) as last) e
    where last > 0;
    perform setval(pg_get_serial_sequence('milepost.inbox_dead', 'pos'), last)
    from (select max(pos) as last from milepost.inbox_dead) d where last > 0;
    perform setval(pg_get_serial_sequence('milepost.worker', 'id'), last)
    from (select greatest(max(id), worker_last) as last from milepost.worker) w where last > 0;
    perform setval('milepost.group_slot_beyond', last)
    from (select max(slot) as last from milepost.group_slot) s where last >= 100000;
    insert into milepost.group_note (group_key, starts)
    select distinct group_key, 0 from milepost.live where state = 'blocked' and group_key is not null;
    perform milepost.switch_recording(what) from unnest(array['kind', 'dag']) what;
    insert into milepost.audit (who, what, detail)
    values (made_by, 'move', jsonb_build_object('after', jsonb_build_object('move', move, 'from', from_store)));
end
$$;

-- Abandons a move that is in progress, and deletes the imported rows. Returns false if there is none.
create or replace function milepost.give_up_move(move uuid) returns boolean language plpgsql
set lock_timeout = '10s' as $$
declare
    moved text;
begin
    delete from milepost.arrival where move_id = move and completed_at is null;
    if not found then
        return false;
    end if;
    delete from milepost.arrival_part where move_id = move;
    perform milepost.open_after_move();
    -- In one statement, since some tables refer to others.
    select string_agg(format('milepost.%I', t), ', ') into moved from milepost.moved_tables() t where t <> all (milepost.standing_tables());
    -- The imported rows are deleted, including the audit log of the other store, which still has it.
    alter table milepost.audit disable trigger kept_whole;
    execute 'truncate ' || moved;
    alter table milepost.audit enable trigger kept_whole;
    return true;
end
$$;
