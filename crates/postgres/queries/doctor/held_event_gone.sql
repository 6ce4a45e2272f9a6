-- Parked events and dead letters that are not at their positions in the log.
select count(*) over () as count, h.event_id::text as what, h.detail
from (
    select p.event_id, p.slot, p.pos, 'parked for ' || p.subscription as detail from milepost.parked_event p
    union all
    select d.event_id, d.slot, d.pos, 'dead-lettered for ' || d.subscription from milepost.dead_event d
) h
where not exists (select from milepost.event e where e.slot = h.slot and e.pos = h.pos and e.event_id = h.event_id)
order by what, h.detail
limit 10
