-- State changes as events: the kinds and DAGs that subscriptions select. sql/changes.sql emits the events.

-- what: 'kind' for jobs, or 'dag' for batches.
create table milepost.change_source (
    what text not null check (what in ('kind', 'dag')),
    name text not null,
    subscription text not null references milepost.subscription on delete cascade,
    primary key (what, name, subscription)
);
create index on milepost.change_source (subscription);
