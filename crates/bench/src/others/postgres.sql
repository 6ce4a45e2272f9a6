-- One example of a row in the store that no benchmark created. $1 the queue of benches
(select 'a job of queue ' || queue from milepost.job where queue <> $1 limit 1)
union all
(select 'schedule ' || name from milepost.schedule limit 1)
union all
(
    select 'worker ' || id || ' of queue ' || served
    from milepost.worker, unnest(queues) as served
    where served <> $1
    limit 1
)
union all
(select 'an event of ' || aggregate_type from milepost.aggregate where aggregate_type <> $1 limit 1)
union all
(select 'subscription ' || name from milepost.subscription where name <> 'bench' limit 1)
limit 1
