-- The consumers. Their names are found with a loose index scan, without reading all rows.
with recursive checkpoint_name as (
    select (select min(consumer) from milepost.aggregate_checkpoint) as consumer
    union all
    select (select min(c.consumer) from milepost.aggregate_checkpoint c where c.consumer > n.consumer)
    from checkpoint_name n where n.consumer is not null
),
processed_name as (
    select (select min(consumer) from milepost.processed_event) as consumer
    union all
    select (select min(p.consumer) from milepost.processed_event p where p.consumer > n.consumer)
    from processed_name n where n.consumer is not null
),
known as (
    select consumer from checkpoint_name
    union select consumer from processed_name
    union select consumer from milepost.inbox_consumer
    union select consumer from milepost.inbox_dead
)
select k.consumer, s.gap_wait_ms, s.parked_max, s.gap_policy, s.begins_anywhere,
       (select count(*) from milepost.aggregate_checkpoint c where c.consumer = k.consumer) as aggregates,
       (select count(*) from milepost.inbox_parked p where p.consumer = k.consumer) as parked,
       (select count(*) from milepost.inbox_dead d where d.consumer = k.consumer) as dead,
       (select coalesce(sum(t.duplicates), 0)::bigint from milepost.inbox_tally t where t.consumer = k.consumer) as duplicates
from known k cross join lateral milepost.settings_of(k.consumer) s
where k.consumer is not null
order by k.consumer
