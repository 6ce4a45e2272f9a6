-- Deletes parked aggregates without parked events. $1 limit
delete from milepost.parked_aggregate
where (subscription, aggregate_type, aggregate_id) in (
    select a.subscription, a.aggregate_type, a.aggregate_id from milepost.parked_aggregate a
    where not exists (select from milepost.parked_event p
                      where p.subscription = a.subscription and p.aggregate_type = a.aggregate_type and p.aggregate_id = a.aggregate_id)
    limit $1
)
returning subscription || ': ' || aggregate_type || '/' || aggregate_id
