-- The next events of each slot, in order. Arrays with one element for each slot: $1 slots, $2 `seen` snapshots, $3 `upto` snapshots (null: now), $4 floors,
-- $5 positions, $6 limits. $7: wanted aggregate types (null: all except state changes); $8: wanted event types (null: all). $9: larger payloads are
-- omitted, as are compressed ones, whose size is not known, and those of unwanted events. $10: the epoch in which the positions were read. A slot without events has one row without a position.
-- No row at all if the epoch has ended.
with s as materialized (
    select i.slot, i.seen, i.seen::pg_snapshot as before, coalesce(i.upto::pg_snapshot, pg_current_snapshot()) as upto, i.floor, i.pos, i.events
    from unnest($1::smallint[], $2::text[], $3::text[], $4::bigint[], $5::bigint[], $6::bigint[]) i(slot, seen, upto, floor, pos, events)
    where exists (select from milepost.running_epoch e where e.id = $10)
),
-- Transactions that were in flight when a window began and have ended since.
late as materialized (
    select distinct s.seen, x.xid
    from s cross join lateral pg_snapshot_xip(s.before) x(xid)
    where s.pos < s.floor and pg_visible_in_snapshot(x.xid, s.upto) and exists (select from milepost.event e where e.xid = x.xid)
)
select s.slot, s.upto::text as upto, e.pos, e.event_id, e.aggregate_type, e.aggregate_id, e.aggregate_seq, e.event_type, e.emitted_at,
       e.headers::text as headers, pg_column_size(e.payload) as bytes,
       case when pg_column_size(e.payload) <= $9 and pg_column_compression(e.payload) is null
                 and case when $7::text[] is null then not starts_with(e.aggregate_type, 'milepost.') else e.aggregate_type = any ($7) end
                 and ($8::text[] is null or e.event_type = any ($8))
            then e.payload end::text as payload
from s left join lateral (
    (select e.* from late l cross join lateral (
         select * from milepost.event e
         where e.xid = l.xid and e.slot = s.slot and e.pos > s.pos and e.pos <= s.floor
         order by e.pos limit s.events
     ) e
     where l.seen = s.seen
     order by e.pos limit s.events)
    union all
    (select * from milepost.event e
     where e.slot = s.slot and e.pos > greatest(s.pos, s.floor)
       and pg_visible_in_snapshot(e.xid, s.upto) and not pg_visible_in_snapshot(e.xid, s.before)
     order by e.pos limit s.events)
    order by pos
    limit s.events
) e on true
