-- Targets of bulk jobs that come from files.

-- The columns of the file with which each run of the bulk job is started; null: its targets are in tables.
alter table milepost.bulk_definition add column columns jsonb;

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
