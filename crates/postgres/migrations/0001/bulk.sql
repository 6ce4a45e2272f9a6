-- Bulk jobs: definitions, progress of runs, settings, failed targets, and targets from files.

-- Bulk jobs that can be started. The name is the kind of their jobs. Workers use their own configuration; this table is for
-- listings and for clients that start bulk jobs in SQL.
-- columns: the columns of the file with which each run is started; null: its targets are in tables.
-- place: name and address, without secrets, of the database that contains the targets, if it is another one.
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
    updated_at timestamptz not null default now(),
    columns jsonb,
    place text
);

create index bulk_definition_group on milepost.bulk_definition (group_key);

-- Progress of a run. Chunks lock the row, so it contains nothing that operators write.
-- token: the fence; a worker that takes the run over sets it to its run token, and no chunk with a lower one commits.
-- origin: the run whose targets are processed: the run itself, or the one whose failures it retries.
-- snapshot: the transactions that were writing when the run began; its targets are frozen when all of these have ended.
-- backend_*: the session whose chunk is canceled when the run is taken over or aborted immediately.
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
    -- Number of chunks when the current run token took the run over; if chunks is higher, the run has progressed since.
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

-- Settings that operators make for a run.
-- given: the number of its failures that were assigned to runs that retry them.
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

-- Targets that could not be applied. A target that is retried belongs to the run that retries it, and is deleted with that
-- run.
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

-- Files whose rows are the targets of a run.
-- started_at: null while the file is being staged. touched_at: the time of the last write.
create table milepost.bulk_file (
    run uuid primary key,
    name text not null,
    rows bigint not null default 0,
    started_at timestamptz,
    touched_at timestamptz not null default now()
);

-- The rows of files, numbered from 1; each has the columns that the bulk job declares.
create table milepost.bulk_target (
    run uuid not null,
    n bigint not null,
    row jsonb not null,
    primary key (run, n)
);

-- Finds out whether a run, or one that retries its failures, still needs its file.
create index bulk_origin on milepost.bulk (origin);
