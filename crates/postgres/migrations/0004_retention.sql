-- Retention: what is over is forgotten in time; and lists of what is rare read only that.

-- When it failed for good; null in every other state.
alter table milepost.live add column failed_at timestamptz;

update milepost.live l
set failed_at = coalesce(
    (select max(h.at) from milepost.history h where h.job_id = l.id and h.to_state = 'failed'), now())
where state = 'failed';

create index live_failed on milepost.live (failed_at) where failed_at is not null;
-- What neither waits for a worker nor runs: the hot way of a job, from pending over running to ended, never enters it.
create index live_aside on milepost.live (state, id) where state <> 'pending' and state <> 'running';

-- Whether its history was shortened to the last entry.
alter table milepost.ended add column shortened boolean not null default false;
create index ended_aside on milepost.ended (state, id) where state <> 'succeeded';

-- When the job ended whose rows are gone; null while they are there.
alter table milepost.job_key add column job_ended_at timestamptz;
create index job_key_due on milepost.job_key (job_ended_at) where job_ended_at is not null;

create index worker_ended on milepost.worker (ended_at) where ended_at is not null;

-- Upkeep that one process at a time does, and until when it is nobody else's turn.
create table milepost.turn (
    name text primary key,
    until timestamptz not null,
    -- Where it goes on: for retention, a block of ended.
    place bigint not null default 0
);

insert into milepost.turn (name, until) values ('retention', '-infinity');
