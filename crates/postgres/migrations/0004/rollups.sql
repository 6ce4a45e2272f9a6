-- Numbers of attempts by period, queue and kind, counted from the history by maintenance, for charts.
--
-- step_s: the length of the period; periods get longer as they get older. starts_at: its start. queue, kind: empty if they are not known. bucket: n for
-- durations from 2^n ms, up to twice that: of the wait before a claim, and of the run before other verbs; -1 if not known.
create table milepost.rollup (
    step_s int not null,
    starts_at timestamptz not null,
    queue text not null,
    kind text not null,
    verb milepost.verb not null,
    bucket smallint not null,
    times bigint not null,
    primary key (step_s, starts_at, queue, kind, verb, bucket)
);

-- Up to where the history is counted; one row. position: of the feed of changes. pos: the last position in the history at that time. at: when.
create table milepost.rollup_position (
    one boolean primary key default true check (one),
    position text not null,
    pos bigint not null,
    at timestamptz not null
);
