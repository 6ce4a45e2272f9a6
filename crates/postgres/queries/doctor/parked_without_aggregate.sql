-- Parked events whose aggregate is not parked.
select count(*) over () as count, p.subscription || ': ' || p.aggregate_type || '/' || p.aggregate_id as what,
       count(*)::text || ' events' as detail
from milepost.parked_event p
where not exists (select from milepost.parked_aggregate a
                  where a.subscription = p.subscription and a.aggregate_type = p.aggregate_type and a.aggregate_id = p.aggregate_id)
group by p.subscription, p.aggregate_type, p.aggregate_id
order by what
limit 10
