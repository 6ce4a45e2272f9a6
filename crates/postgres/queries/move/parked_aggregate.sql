-- Imports parked aggregates of subscriptions. Their heads were imported before.
insert into milepost.parked_aggregate (subscription, aggregate_type, aggregate_id, slot, parked_at, deliveries, next_delivery_at, why)
select r.subscription, r.aggregate_type, r.aggregate_id, a.slot, r.parked_at, r.deliveries, r.next_delivery_at, r.why
from unnest($1::text[], $2::text[], $3::text[], $4::timestamptz[], $5::int[], $6::timestamptz[], $7::text[])
    as r(subscription, aggregate_type, aggregate_id, parked_at, deliveries, next_delivery_at, why)
left join milepost.aggregate a on a.aggregate_type = r.aggregate_type and a.aggregate_id = r.aggregate_id
