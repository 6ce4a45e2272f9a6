-- State changes as events: which ones subscriptions want. sql/changes.sql makes events of them.

-- what: 'kind' of jobs, or 'dag' of batches.
create table milepost.change_source (
    what text not null check (what in ('kind', 'dag')),
    name text not null,
    subscription text not null references milepost.subscription on delete cascade,
    primary key (what, name, subscription)
);
create index on milepost.change_source (subscription);
