-- Epochs of the database: see migrations/0016_epoch.sql.

-- Which epoch it is. A new one begins where the last one has ended.
create or replace function milepost.current_epoch() returns uuid language plpgsql as $$
declare
    server bigint := (select c.system_identifier from pg_control_system() c);
    known uuid := (select e.id from milepost.running_epoch e where e.system_identifier = server);
begin
    if known is not null then
        return known;
    end if;
    -- What a snapshot finds and does not know as ended was written by another server.
    insert into milepost.epoch as e (started_at, system_identifier, relation, history_floor, batch_history_floor)
    select pg_postmaster_start_time(), server, 'milepost.epoch'::regclass,
           coalesce((select max(h.pos) from milepost.history h
                     where h.xid >= pg_snapshot_xmin(s.now) and not pg_visible_in_snapshot(h.xid, s.now)), 0),
           coalesce((select max(h.pos) from milepost.batch_history h
                     where h.xid >= pg_snapshot_xmin(s.now) and not pg_visible_in_snapshot(h.xid, s.now)), 0)
    from pg_current_snapshot() s(now)
    on conflict (one) do update
    set id = excluded.id, begun_at = excluded.begun_at, started_at = excluded.started_at,
        system_identifier = excluded.system_identifier, relation = excluded.relation,
        history_floor = excluded.history_floor, batch_history_floor = excluded.batch_history_floor
    where (e.started_at, e.system_identifier, e.relation)
          is distinct from (excluded.started_at, excluded.system_identifier, excluded.relation);
    -- Ours, or that of somebody who was quicker.
    return (select e.id from milepost.running_epoch e);
end
$$;
