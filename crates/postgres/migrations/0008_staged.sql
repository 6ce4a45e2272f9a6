-- Targets of bulk jobs that come from files.

-- The columns of the file that each run of a bulk job is started with; null: its targets are in tables.
alter table milepost.bulk_definition add column columns jsonb;

-- A file whose rows are the targets of a run.
-- started_at: null while it is being staged. touched_at: when somebody last wrote to it.
create table milepost.bulk_file (
    run uuid primary key,
    name text not null,
    rows bigint not null default 0,
    started_at timestamptz,
    touched_at timestamptz not null default now()
);

-- Its rows, numbered from 1; each has the columns that the bulk job declares.
create table milepost.bulk_target (
    run uuid not null,
    n bigint not null,
    row jsonb not null,
    primary key (run, n)
);

-- Whether a run still needs its file, or one that tries its failures again.
create index bulk_origin on milepost.bulk (origin);
