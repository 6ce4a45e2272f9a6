-- What a failover can take back. Epochs of the database: see migrations/0016_epoch.sql.

-- Returns the id of the current epoch; begins one if the last one has ended.
create or replace function milepost.current_epoch() returns text language plpgsql as $$
declare
    server text := (select lpad(to_hex(c.system_identifier & 4294967295), 8, '0') from pg_control_system() c);
    known text := (select e.id from milepost.running_epoch e where starts_with(e.id, server));
begin
    if known is not null then
        return known;
    end if;
    -- A visible row whose transaction id is not in the snapshot was restored from another server. Up to the last such row, nothing is new.
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
    -- Either this one, or that of a concurrent caller.
    return (select e.id from milepost.running_epoch e);
end
$$;

-- The timeline of the server, which rises with each promotion and restore.
create or replace function milepost.current_timeline() returns int language sql stable parallel safe as $$
    select ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int
$$;

-- Notes the timeline of the server. Returns it if it was not known, to one caller only.
create or replace function milepost.note_timeline() returns int language sql as $$
    insert into milepost.timeline (id)
    select t.id from milepost.current_timeline() t(id)
    where not exists (select from milepost.timeline k where k.id = t.id)
    on conflict do nothing
    returning id
$$;

-- A promoted standby may lack claims that workers were told of. Run tokens are larger than this, which rises with each promotion: no run token
-- is given a second time for another run. 0 before the first one.
create or replace function milepost.run_token_floor() returns int language sql stable parallel safe as $$
    select least(milepost.current_timeline() - 1, 20000) * 100000
$$;

-- Called before an answer that rests on a commit of before: with synchronous replication, a commit is seen although no standby has it, when
-- the connection that waited for the standby was ended. The transaction of the caller then waits, since it writes something too.
create or replace function milepost.confirm_replication() returns void language plpgsql as $$
begin
    if current_setting('synchronous_standby_names') <> '' then
        perform pg_logical_emit_message(true, 'milepost', '');
    end if;
end
$$;
