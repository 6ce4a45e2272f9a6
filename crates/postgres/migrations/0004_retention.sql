-- Retention: deletion of old jobs, and indexes that contain only jobs in rare states.

-- When the job failed permanently; null in every other state.
alter table milepost.live add column failed_at timestamptz;

update milepost.live l
set failed_at = coalesce(
    (select max(h.at) from milepost.history h where h.job_id = l.id and h.to_state = 'failed'), now())
where state = 'failed';

create index live_failed on milepost.live (failed_at) where failed_at is not null;
-- Jobs that neither wait for a worker nor run. The usual states of a job (pending, running, ended) never enter this index.
create index live_aside on milepost.live (state, id) where state <> 'pending' and state <> 'running';

-- Whether the history was reduced to its last entry.
alter table milepost.ended add column shortened boolean not null default false;
create index ended_aside on milepost.ended (state, id) where state <> 'succeeded';

-- When the job ended, if its rows have been deleted; null while they exist.
alter table milepost.job_key add column job_ended_at timestamptz;
create index job_key_due on milepost.job_key (job_ended_at) where job_ended_at is not null;

create index worker_ended on milepost.worker (ended_at) where ended_at is not null;

-- Maintenance that one process does at a time, and the time until which no other process may take the turn.
create table milepost.turn (
    name text primary key,
    until timestamptz not null,
    -- The position at which to continue: for retention, a block of ended.
    place bigint not null default 0
);

insert into milepost.turn (name, until) values ('retention', '-infinity');
