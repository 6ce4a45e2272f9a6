-- State changes of batches, and of tasks without a job, after snapshot $1, up to snapshot $2, after position $3 among those, at most $4.
-- No row if epoch $5 has ended.
with w as materialized (
    select $1::pg_snapshot as seen, $2::pg_snapshot as upto, e.batch_history_floor
    from milepost.running_epoch e
    where e.id = $5
),
-- Transactions that were in flight at $1 and have ended since.
late as materialized (
    select x.xid from w cross join lateral pg_snapshot_xip(w.seen) x(xid) where pg_visible_in_snapshot(x.xid, w.upto)
)
select h.pos, h.batch_id, b.dag, h.task, h.at, h.verb::text as verb, h.from_state, h.to_state
from w
cross join lateral (
    (select * from milepost.batch_history h
     where h.xid >= pg_snapshot_xmax(w.seen) and h.xid < pg_snapshot_xmax(w.upto) and pg_visible_in_snapshot(h.xid, w.upto)
       and h.pos > greatest($3, w.batch_history_floor)
     order by h.pos limit $4)
    union all
    (select h.* from late l cross join lateral (
         select * from milepost.batch_history h
         where h.xid = l.xid and h.pos > greatest($3, w.batch_history_floor)
         order by h.pos limit $4
     ) h
     order by h.pos limit $4)
    order by pos
    limit $4
) h
left join lateral (select * from milepost.batch b where b.id = h.batch_id offset 0) b on true
order by h.pos
