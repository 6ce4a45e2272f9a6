-- Epochs of the database and timelines of the server, which detect commits that a failover has undone. See
-- migrations/0001/epoch.sql.

-- Returns the id of the current epoch; begins one if the last one has ended.
create or replace function milepost.current_epoch() returns text language plpgsql as $$
declare
    server text := (select lpad(to_hex(c.system_identifier & 4294967295), 8, '0') from pg_control_system() c);
    known text;
    is_restored boolean;
begin
    -- Again, if more data was restored in the meantime; after the last attempt, null.
    for attempt in 1 .. 10 loop
        known := (select e.id from milepost.running_epoch e where starts_with(e.id, server));
        is_restored := not milepost.is_noted() or not exists (
            select from milepost.timeline t where t.server = milepost.log_identity() and t.xmin::text::bigint = t.noted_in);
        if known is not null and not is_restored then
            exit;
        end if;
        -- In a restored store, the run tokens follow those of the old one from the first claim. First, because it ends the epoch. A promotion is noted by
        -- the caller that reports it.
        if is_restored then
            perform milepost.note_timeline();
        end if;
        -- A visible row whose transaction ID is not in the snapshot was restored from another server. Up to the last such row,
        -- nothing is new.
        insert into milepost.epoch as e (id, started_at, relation, history_floor, batch_history_floor)
        select server || left(translate(gen_random_uuid()::text, '-', ''), 16), pg_postmaster_start_time(), 'milepost.epoch'::regclass,
               coalesce((select max(h.pos) from milepost.history h
                         where h.xid >= pg_snapshot_xmin(s.now) and not pg_visible_in_snapshot(h.xid, s.now)), 0),
               coalesce((select max(h.pos) from milepost.batch_history h
                         where h.xid >= pg_snapshot_xmin(s.now) and not pg_visible_in_snapshot(h.xid, s.now)), 0)
        from pg_current_snapshot() s(now)
        on conflict (one) do update
        set id = excluded.id, started_at = excluded.started_at, relation = excluded.relation,
            history_floor = excluded.history_floor, batch_history_floor = excluded.batch_history_floor
        where (left(e.id, 8), e.started_at, e.relation) is distinct from (left(excluded.id, 8), excluded.started_at, excluded.relation);
        -- The sequence of a restored or promoted store can be lower than ids that workers of before still use. With one of their ids, a new worker
        -- would share their lease and their runs. Not in a new store. Another restore of the same dump begins at the same value, so the
        -- step after a restore is from a wide range.
        if is_restored or (select s.is_called from milepost.worker_id_seq s)
           or not exists (select from milepost.timeline t where t.id = milepost.current_timeline()) then
            perform count(nextval('milepost.worker_id_seq'))
            from generate_series(1, 10000 + floor(random() * case when is_restored then 1000000 else 10000 end)::int);
        end if;
    end loop;
    return known;
end
$$;

-- Returns whether this store was not restored, or its restore was noted. In PL/pgSQL, as milepost.current_timeline().
create or replace function milepost.is_noted() returns boolean language plpgsql stable as $$
declare
    is_noted boolean;
begin
    select count(*) filter (where t.xmin::text::bigint <> t.noted_in)
           <= coalesce(max(t.restored_rows) filter (where t.xmin::text::bigint = t.noted_in), -1)
    into is_noted
    from milepost.timeline t;
    return is_noted;
end
$$;

-- Returns the random part of the identity of the log; null in a restored store until its timeline is noted.
create or replace function milepost.log_salt() returns bigint language sql stable as $$
    select t.log_salt from milepost.timeline t where t.xmin::text::bigint = t.noted_in and milepost.is_noted()
    order by t.restored_rows desc, t.seen_at desc, t.log_salt limit 1
$$;

-- Returns which log the transaction ids of positions refer to: the server, the table in it, and the restore. A restored dump is another log, also
-- on the same server or a copy of it, whose transaction ids can be lower.
create or replace function milepost.log_identity() returns bigint language sql stable as $$
    -- -1: a restored store in which no worker has registered yet.
    select c.system_identifier # 'milepost.event'::regclass::oid::bigint # coalesce(milepost.log_salt(), -1) from pg_control_system() c
$$;

-- Returns the timeline of the server, which rises with each promotion and restore. In PL/pgSQL, because a session plans the query of an SQL
-- function anew for each call, and each claim needs it.
create or replace function milepost.current_timeline() returns int language plpgsql stable as $$
begin
    return ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int;
end
$$;

-- Records the timeline of the server. Returns it if it was new, to one caller only; null for the first one of a log, on which nothing was
-- promoted. A store that returns as a dump to a server where it was before is another log, and so is one whose data was restored. Its run tokens
-- exceed those that the dump contains: of recorded timelines, and of one that was not recorded before the dump.
create or replace function milepost.note_timeline() returns int language plpgsql as $$
declare
    of_log bigint := milepost.log_identity();
    current int := milepost.current_timeline();
    salt bigint;
    is_first boolean;
    restored int;
    before int;
    again int := 0;
    expected bigint := 0;
    written bigint;
begin
    if milepost.is_noted()
       and exists (select from milepost.timeline k where k.server = of_log and k.id = current and k.xmin::text::bigint = k.noted_in) then
        return null;
    end if;
    -- One caller at a time: a row of this transaction has another key than that of a concurrent one.
    perform pg_advisory_xact_lock(19797, -2);
    salt := milepost.log_salt();
    of_log := milepost.log_identity();
    if milepost.is_noted()
       and exists (select from milepost.timeline k where k.server = of_log and k.id = current and k.xmin::text::bigint = k.noted_in) then
        return null;
    end if;
    is_first := not exists (select from milepost.timeline k where k.server = of_log and k.xmin::text::bigint = k.noted_in);
    -- Counted before the rows are used: what is restored from now on must be noted again.
    restored := (select count(*) from milepost.timeline k where k.xmin::text::bigint <> k.noted_in);
    before := coalesce(
        (select max(k.timelines_before) from milepost.timeline k
         where k.server = of_log and k.xmin::text::bigint = k.noted_in and salt is not null),
        -- + 1: a promotion before the dump may not have been noted.
        (select greatest(max(k.timelines_before + k.id) + 1, (select max(l.token) / 100000 + 1 from milepost.live l))
         from milepost.timeline k
         having count(*) > 0), 0);
    if salt is null then
        salt := floor(random() * 4611686018427387904)::bigint;
        of_log := of_log # -1 # salt;
        again := floor(random() * 20000);
        -- A restore of the data brings back the epoch, in which other transactions have the same ids.
        update milepost.epoch e set started_at = '-infinity';
    end if;
    -- Passes over a random number of ids, see noted_in. Without writing rows: every claim would read the dead ones.
    for passed in 1 .. again loop
        begin
            perform pg_logical_emit_message(true, 'milepost', '');
            raise exception 'again';
        exception when raise_exception then
            null;
        end;
    end loop;
    -- The id that writes the row is known afterwards, so it is guessed. Each attempt takes the id of a subtransaction.
    loop
        begin
            insert into milepost.timeline as t (server, id, token_offset, restored_rows, log_salt, timelines_before, noted_in)
            values (of_log, current, floor(random() * 50000)::int, restored, salt, before, expected)
            returning t.xmin::text::bigint into written;
            exit when written = expected;
            expected := case when written = 4294967295 then 3 else written + 1 end;
            raise exception 'again';
        exception when raise_exception then
            null;
        end;
    end loop;
    return case when not is_first then current end;
end
$$;

-- Returns a value that every new run token exceeds, and that rises with each promotion; 0 before the first one. Null in a restored store in which
-- no worker has registered yet: its rows of timelines were written by another transaction than the one they name. A promoted
-- standby may lack claims whose tokens workers already received; this floor prevents a token from being issued again for
-- another run. It counts the timelines of earlier logs, too. Two standbys, or two restores of one backup, can begin the same
-- timeline; a random offset of each makes their tokens different (with a probability of 49,999 in 50,000). A promoted standby uses the start
-- time of the server, in us, until a worker notes the promotion.
create or replace function milepost.run_token_floor() returns int language plpgsql stable as $$
declare
    number int;
    noted_offset int;
begin
    if not milepost.is_noted() then
        return null;
    end if;
    select least(coalesce(max(k.timelines_before), 0) + milepost.current_timeline() - 1, 20000) into number from milepost.timeline k;
    if number = 0 then
        return 0;
    end if;
    select k.token_offset into noted_offset from milepost.timeline k where k.timelines_before + k.id - 1 = number order by k.seen_at desc limit 1;
    return number * 100000
        + coalesce(noted_offset, ((extract(epoch from pg_postmaster_start_time()) * 1000000)::bigint % 50000)::int);
end
$$;

-- Waits for synchronous replication. Called before a result that is based on an earlier commit: such a commit can be visible
-- although no standby has it, if the connection that waited for the standby was closed. Since this function writes to the
-- WAL, the caller's transaction waits for the standby at its commit.
create or replace function milepost.confirm_replication() returns void language plpgsql as $$
begin
    if current_setting('synchronous_standby_names') <> '' then
        perform pg_logical_emit_message(true, 'milepost', '');
    end if;
end
$$;
