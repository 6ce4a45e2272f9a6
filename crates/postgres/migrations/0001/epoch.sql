-- Epochs of the database. Within one epoch, a transaction id names one transaction only; docs/adr/0029-epochs.md has the reasons.
--
-- The table is unlogged: PostgreSQL empties it after a crash, on a promoted standby and in a restored base backup. The other two columns detect
-- restored files of a stopped server (started_at) and a restored dump (relation). milepost.current_epoch() begins the next epoch.
--
-- id: the server, in 8 hexadecimal digits, then 16 random ones. started_at: start of the server. relation: this table.
-- history_floor, batch_history_floor: no position up to here is new, even if its transaction id is; see current_epoch().
create unlogged table milepost.epoch (
    one boolean primary key default true check (one),
    id text not null,
    started_at timestamptz not null,
    relation oid not null,
    history_floor bigint not null,
    batch_history_floor bigint not null
);

-- Timelines of the server that were noticed, the first at the migration. Promotion of a standby and a restore from a base backup begin another
-- one, on which the last commits before can be missing: see milepost.note_timeline().
create table milepost.timeline (
    id int primary key,
    seen_at timestamptz not null default now()
);
insert into milepost.timeline (id)
select ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int;

-- The current epoch; no row between the end of one and the begin of the next.
create view milepost.running_epoch as
select e.id, e.history_floor, e.batch_history_floor
from milepost.epoch e
where e.one and e.started_at = pg_postmaster_start_time() and e.relation = 'milepost.epoch'::regclass::oid;
