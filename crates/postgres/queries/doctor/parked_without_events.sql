-- Parked aggregates without parked events.
select count(*) over () as count, a.subscription || ': ' || a.aggregate_type || '/' || a.aggregate_id as what,
       'parked since ' || a.parked_at as detail
from milepost.parked_aggregate a
where not exists (select from milepost.parked_event p
                  where p.subscription = a.subscription and p.aggregate_type = a.aggregate_type and p.aggregate_id = a.aggregate_id)
order by what
limit 10
