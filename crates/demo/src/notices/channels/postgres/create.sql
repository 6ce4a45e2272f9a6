-- Notices have no unique constraint: a channel that is notified twice has two.
create table if not exists milepost_demo_channel (
    world bigint not null, id bigint not null,
    x double precision not null, y double precision not null, z double precision not null,
    primary key (world, id)
);
create table if not exists milepost_demo_notice (run uuid not null, channel bigint not null);
create index if not exists milepost_demo_notice_run on milepost_demo_notice (run, channel)
