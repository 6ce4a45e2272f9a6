-- The next events of slots. $1 slots, $2 what each has seen, $3 up to where its window goes (null: to now), $4 floors, $5 positions, $6 how
-- many of each, $7 how many bytes of each, $8 aggregate types and $9 event types that are wanted (null: all). An event that is not
-- wanted comes without content. read: how many there were before they were cut at the bytes.
with s as materialized (
    select i.slot, i.seen, i.seen::pg_snapshot as before, coalesce(i.upto::pg_snapshot, pg_current_snapshot()) as upto, i.floor, i.pos, i.events
    from unnest($1::smallint[], $2::text[], $3::text[], $4::bigint[], $5::bigint[], $6::bigint[]) i(slot, seen, upto, floor, pos, events)
),
-- Transactions that were in flight when a window began and have ended since.
late as materialized (
    select distinct s.seen, x.xid
    from s cross join lateral pg_snapshot_xip(s.before) x(xid)
    where s.pos < s.floor and pg_visible_in_snapshot(x.xid, s.upto) and exists (select from milepost.event e where e.xid = x.xid)
)
select s.slot, p.read, s.upto::text as upto, p.pos, p.event_id, p.aggregate_type, p.aggregate_id, p.aggregate_seq, p.event_type,
       p.headers::text as headers, p.payload::text as payload, p.emitted_at
from s cross join lateral (
    select c.*, sum(c.bytes) over (order by c.pos) - c.bytes as before_it, count(*) over () as read
    from (
        select e.pos, e.emitted_at,
               case when w.wanted then e.event_id end as event_id,
               case when w.wanted then e.aggregate_type end as aggregate_type,
               case when w.wanted then e.aggregate_id end as aggregate_id,
               case when w.wanted then e.aggregate_seq end as aggregate_seq,
               case when w.wanted then e.event_type end as event_type,
               case when w.wanted then e.headers end as headers,
               case when w.wanted then e.payload end as payload,
               case when w.wanted then pg_column_size(e.payload) else 0 end as bytes
        from (
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
        ) e
        cross join lateral (
            select ($8::text[] is null or e.aggregate_type = any ($8)) and ($9::text[] is null or e.event_type = any ($9)) as wanted
        ) w
        order by e.pos
        limit s.events
    ) c
) p
where p.before_it < $7
order by s.slot, p.pos
