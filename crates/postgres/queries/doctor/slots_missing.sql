-- Subscriptions that do not have all of their slots.
select count(*) over () as count, s.name as what, count(k.slot)::text || ' slots' as detail
from milepost.subscription s
left join milepost.subscription_place k on k.subscription = s.name
group by s.name
having count(k.slot) <> 64
order by what
limit 10
