-- Bulk jobs: what they are, how far each run is, what it may take, and which of its targets failed.

-- What may be started. Its name is the kind of its jobs. Workers go by their own configuration; this is for lists and
-- for those who start bulk jobs in SQL.
create table milepost.bulk_definition (
    name text primary key,
    type text,
    category text,
    group_key text not null,
    queue text not null,
    priority smallint not null,
    max_attempts int not null,
    chunk_ms bigint not null,
    chunk_rows_min int not null,
    chunk_rows_max int not null,
    rows_per_s double precision,
    duty double precision not null,
    failures_max bigint not null,
    then_name text,
    effects text not null,
    fingerprint text not null,
    source text not null,
    updated_at timestamptz not null default now()
);

create index bulk_definition_group on milepost.bulk_definition (group_key);

-- How far a run is. Chunks lock the row, so nothing that an operator writes is in it.
-- token: the fence; a worker that takes the run over raises it to its own, and no chunk with a lower one commits.
-- origin: the run whose targets these are: itself, or the one whose failures it tries again.
-- snapshot: who was writing when it began; its targets are frozen when all of those have ended.
-- backend_*: whose chunk is to be stopped when the run is taken over or aborted at once.
create table milepost.bulk (
    job_id uuid primary key,
    origin uuid not null,
    retry_of uuid,
    token int not null default 0,
    fingerprint text,
    snapshot pg_snapshot,
    surveyed_at timestamptz,
    upper_key jsonb,
    total bigint,
    total_exact boolean,
    cursor_key jsonb,
    done bigint not null default 0,
    failed bigint not null default 0,
    chunks bigint not null default 0,
    -- Chunks when the run token that holds it took it over: it has progressed since when there are more.
    chunks_before bigint not null default 0,
    chunk_rows int,
    chunk_ms bigint,
    busy_ms bigint not null default 0,
    held_ms bigint not null default 0,
    throttle text,
    throttle_since timestamptz,
    backend_pid int,
    backend_started_at timestamptz,
    started_at timestamptz,
    updated_at timestamptz,
    ended_at timestamptz
) with (fillfactor = 50);

-- What operators set for a run.
-- given: how many of its failures went to runs that try them again.
create table milepost.bulk_setting (
    job_id uuid primary key,
    rows_per_s double precision,
    duty double precision,
    chunk_ms bigint,
    chunk_rows_min int,
    chunk_rows_max int,
    given bigint not null default 0,
    set_at timestamptz not null default now()
);

-- Targets that could not be applied. One that is tried again belongs to the run that does so, and is forgotten with it.
create table milepost.bulk_failure (
    job_id uuid not null,
    pos bigint generated always as identity,
    key jsonb not null,
    code text not null,
    message text not null,
    at timestamptz not null default now(),
    retried_by uuid,
    primary key (job_id, pos)
);

create index bulk_failure_own on milepost.bulk_failure (job_id, pos) where retried_by is null;
create index bulk_failure_retried on milepost.bulk_failure (retried_by, pos) where retried_by is not null;
