-- The time in ms until a parked event in a publisher's slots is due.
select (extract(epoch from min(a.next_delivery_at) - clock_timestamp()) * 1000)::bigint
from milepost.parked_aggregate a
join milepost.subscription_slot s on s.subscription = a.subscription and s.slot = a.slot
where a.subscription = $1 and s.owner = $2 and a.next_delivery_at is not null
