-- The active publishers, with the slots that they hold.
select p.subscription, p.label, p.started_at, p.lease_until, p.down_since, p.down_why, count(s.slot) as slots, max(s.token) as token,
       to_timestamp(avg(extract(epoch from s.held_since))) as held_since
from milepost.publisher p
left join milepost.subscription_slot s on s.subscription = p.subscription and s.owner = p.id
where p.lease_until > clock_timestamp()
group by p.id
order by p.subscription, p.started_at
