-- Epochs of the database and timelines of the server, which detect commits that a failover has undone. See
-- migrations/0001/epoch.sql.

-- Returns the id of the current epoch; begins one if the last one has ended.
create or replace function milepost.current_epoch() returns text language plpgsql as $$
declare
    server text := (select lpad(to_hex(c.system_identifier & 4294967295), 8, '0') from pg_control_system() c);
    known text := (select e.id from milepost.running_epoch e where starts_with(e.id, server));
begin
    if known is not null then
        return known;
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
    if (select s.is_called from milepost.worker_id_seq s)
       or not exists (select from milepost.timeline t where t.id = milepost.current_timeline()) then
        perform count(nextval('milepost.worker_id_seq')) from generate_series(1, 10000 + floor(random() * case
            when exists (select from milepost.timeline t where t.server = milepost.log_identity()) then 10000 else 1000000 end)::int);
    end if;
    -- In a restored store, the run tokens follow those of the old one from the first claim. A promotion is noted by the caller that reports it.
    if not exists (select from milepost.timeline t where t.server = milepost.log_identity()) then
        perform milepost.note_timeline();
    end if;
    -- Either the new epoch, or that of a concurrent caller.
    return (select e.id from milepost.running_epoch e);
end
$$;

-- Returns which log the transaction ids of positions refer to: the server, and the table in it. A restored dump is another log, also on a
-- copy of the same server, whose transaction ids can be lower.
create or replace function milepost.log_identity() returns bigint language sql stable as $$
    select c.system_identifier # 'milepost.event'::regclass::oid::bigint from pg_control_system() c
$$;

-- Returns the timeline of the server, which rises with each promotion and restore. In PL/pgSQL, because a session plans the query of an SQL
-- function anew for each call, and each claim needs it.
create or replace function milepost.current_timeline() returns int language plpgsql stable as $$
begin
    return ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int;
end
$$;

-- Records the timeline of the server. Returns it if it was new, to one caller only; null for the first one of a log, on which nothing was
-- promoted. A store that returns as a dump to a server where it was before is another log. Its run tokens exceed those that the dump contains:
-- of recorded timelines, and of one that was not recorded before the dump.
create or replace function milepost.note_timeline() returns int language sql as $$
    with noted as (
        insert into milepost.timeline (server, id, token_offset, timelines_before)
        select c.log, t.id, floor(random() * 50000)::int,
               coalesce((select max(k.timelines_before) from milepost.timeline k where k.server = c.log),
                        (select greatest(max(k.timelines_before + k.id), (select max(l.token) / 100000 + 1 from milepost.live l))
                         from milepost.timeline k
                         having count(*) > 0), 0)
        from milepost.log_identity() c(log), milepost.current_timeline() t(id)
        where not exists (select from milepost.timeline k where k.server = c.log and k.id = t.id)
        on conflict do nothing
        returning server, id
    )
    select n.id from noted n where exists (select from milepost.timeline k where k.server = n.server)
$$;

-- Returns a value that every new run token exceeds, and that rises with each promotion; 0 before the first one. A promoted
-- standby may lack claims whose tokens workers already received; this floor prevents a token from being issued again for
-- another run. It counts the timelines of earlier logs, too. Two standbys, or two restores of one backup, can begin the same
-- timeline; a random offset of each makes their tokens different (with a probability of 49,999 in 50,000). A promoted standby uses the start
-- time of the server, in us, until a worker notes the promotion.
create or replace function milepost.run_token_floor() returns int language plpgsql stable as $$
declare
    number int := least((select coalesce(max(k.timelines_before), 0) from milepost.timeline k) + milepost.current_timeline() - 1, 20000);
    noted_offset int;
begin
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
