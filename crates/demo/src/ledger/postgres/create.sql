-- Only the row number is unique: a place that is notified twice has two rows.
create table if not exists milepost_demo_notification (
    id bigint generated always as identity primary key,
    run text not null,
    place_id int not null,
    job_id uuid not null,
    attempt int not null,
    written_at timestamptz not null default now()
)
