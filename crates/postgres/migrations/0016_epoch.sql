-- Epochs of the database: within one, an id of a transaction names one transaction and no other.
--
-- What ends an epoch can take transactions back that clients have seen; their ids are then given out again. The table is unlogged, so that
-- PostgreSQL itself empties it after a crash, when a standby is promoted, and in a restored base backup. A copy of a stopped server's files
-- shows in the start of the server, and a dump that was restored in the identifiers of the table and of the server.
-- milepost.current_epoch() says which epoch it is, and begins one where there is none.
--
-- started_at, relation, system_identifier: of the server and the table in which the row was written. history_floor, batch_history_floor: at or below these positions, what has an id that
-- this server has not given out yet is from another server.
create unlogged table milepost.epoch (
    one boolean primary key default true check (one),
    id uuid not null default gen_random_uuid(),
    begun_at timestamptz not null default clock_timestamp(),
    started_at timestamptz not null,
    system_identifier bigint not null,
    relation oid not null,
    history_floor bigint not null,
    batch_history_floor bigint not null
);

-- The epoch, as one statement sees it; no row where it has ended and nobody has begun the next.
create view milepost.running_epoch as
select e.id, e.begun_at, e.system_identifier, e.history_floor, e.batch_history_floor
from milepost.epoch e
where e.one and e.started_at = pg_postmaster_start_time() and e.relation = 'milepost.epoch'::regclass::oid;
