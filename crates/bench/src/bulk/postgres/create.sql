-- Members, and the notes that a bulk job creates for them.
create table milepost_bench_member (id bigint primary key, place int not null, name text not null);
create table milepost_bench_note (
    run uuid not null, member bigint not null, place int not null, made_at timestamptz not null default now(),
    primary key (run, member)
)
