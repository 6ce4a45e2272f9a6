-- Keeps what a publisher holds for another lease, of $2 ms.
with p as (
    update milepost.publisher set lease_until = clock_timestamp() + $2 * interval '1 ms' where id = $1
    returning subscription, lease_until
)
update milepost.subscription_slot s set lease_until = p.lease_until from p where s.subscription = p.subscription and s.owner = $1
