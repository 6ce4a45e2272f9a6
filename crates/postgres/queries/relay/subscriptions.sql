-- Subscriptions with their backlogs.
select s.name, s.made_at, s.paused_at, s.paused_why, b.backlog, b.oldest_at, s.log_identity <> milepost.log_identity() as reseed_needed,
       (select count(*) from milepost.parked_aggregate a where a.subscription = s.name) as parked_aggregates,
       (select count(*) from milepost.parked_aggregate a where a.subscription = s.name and a.next_delivery_at is null) as halted_aggregates,
       (select a.why from milepost.parked_aggregate a where a.subscription = s.name
        order by a.next_delivery_at is null desc, a.parked_at limit 1) as parked_why,
       (select count(*) from milepost.dead_event d where d.subscription = s.name and not d.skipped) as dead
from milepost.subscription s
cross join lateral (
    select count(*) as backlog, min(e.emitted_at) as oldest_at
    from milepost.subscription_place k
    cross join lateral (
        select e.emitted_at from milepost.event e
        where e.slot = k.slot and e.pos > k.floor
          -- Until a reseed, transaction ids of new events have no meaning for the positions.
          and (s.log_identity <> milepost.log_identity() or not milepost.has_passed(k, e.xid, e.pos))
        union all
        select e.emitted_at from pg_snapshot_xip(k.seen) x(xid)
        join milepost.event e on e.xid = x.xid and e.slot = k.slot and e.pos <= k.floor
        where not milepost.has_passed(k, e.xid, e.pos)
    ) e
    where k.subscription = s.name
) b
order by s.name
