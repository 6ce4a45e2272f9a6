-- What became of events $1 for each subscription.
select e.event_id, s.subscription,
       case when d.skipped then 'skipped' when d.event_id is not null then 'dead' when p.event_id is not null then 'parked'
            when milepost.has_passed(s, e.xid, e.pos) then 'passed' else 'waiting' end as state
from milepost.event e
join milepost.subscription_place s on s.slot = e.slot
left join milepost.dead_event d on d.subscription = s.subscription and d.event_id = e.event_id
left join milepost.parked_event p on p.subscription = s.subscription and p.event_id = e.event_id
where e.event_id = any ($1)
order by s.subscription
