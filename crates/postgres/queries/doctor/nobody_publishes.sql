-- Subscriptions whose events have waited long in slots that no publisher has held during that time. $1 the check's
-- parameters
with late as (
    select now() - ($1::jsonb ->> 'patience_ms')::bigint * interval '1 millisecond' as since
)
select count(*) over () as count, s.name as what, 'slots with events: ' || count(*) as detail
from milepost.subscription s
join milepost.subscription_place k on k.subscription = s.name
cross join late
where s.paused_at is null and coalesce((select p.lease_until from milepost.publisher p where p.id = k.owner), '-infinity') < late.since
  and (exists (select from milepost.event e
               where e.slot = k.slot and e.pos > k.floor and e.emitted_at < late.since and not milepost.has_passed(k, e.xid, e.pos))
       or exists (select from pg_snapshot_xip(k.seen) x(xid)
                  join milepost.event e on e.xid = x.xid and e.slot = k.slot and e.pos <= k.floor
                  where e.emitted_at < late.since and not milepost.has_passed(k, e.xid, e.pos)))
group by s.name
order by what
limit 10
