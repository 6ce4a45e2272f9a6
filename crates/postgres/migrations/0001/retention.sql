-- Retention: the turns of processes that delete old rows.

-- Maintenance that one process does at a time, and the time until which no other process may take the turn.
create table milepost.turn (
    name text primary key,
    until timestamptz not null,
    -- The position at which to continue: for retention, a block of ended.
    place bigint not null default 0
);

insert into milepost.turn (name, until) values ('retention', '-infinity');
