-- Aggregates with events in several slots, or in another slot than the head.
select count(*) over () as count, e.aggregate_type || '/' || e.aggregate_id as what,
       'events in slots ' || string_agg(distinct e.slot::text, ', ') || '; slot in its row: ' || coalesce(a.slot::text, 'none') as detail
from milepost.event e
left join milepost.aggregate a on a.aggregate_type = e.aggregate_type and a.aggregate_id = e.aggregate_id
group by e.aggregate_type, e.aggregate_id, a.slot
having min(e.slot) <> max(e.slot) or min(e.slot) <> a.slot
order by what
limit 10
