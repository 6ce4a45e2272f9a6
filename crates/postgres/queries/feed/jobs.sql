-- State changes of jobs after snapshot $1, up to snapshot $2 (null: now), after position $3 among those, at most $4. One row without a position if
-- there are none; no row at all if epoch $5 has ended.
with w as materialized (
    select $1::pg_snapshot as seen, coalesce($2::pg_snapshot, pg_current_snapshot()) as upto, e.history_floor
    from milepost.running_epoch e
    where e.id = $5
),
-- Transactions that were in flight at $1 and have ended since.
late as materialized (
    select x.xid from w cross join lateral pg_snapshot_xip(w.seen) x(xid) where pg_visible_in_snapshot(x.xid, w.upto)
)
select w.upto::text as upto, pg_snapshot_xmax(w.upto) >= pg_snapshot_xmax(w.seen) as forward, h.pos, h.job_id, h.at, h.verb::text as verb,
       h.from_state::text as from_state, h.to_state::text as to_state, h.attempt, h.worker_id, h.ready_at, h.error_code, j.kind, j.queue,
       j.batch_id
from w
left join lateral (
    (select * from milepost.history h
     where h.xid >= pg_snapshot_xmax(w.seen) and h.xid < pg_snapshot_xmax(w.upto) and pg_visible_in_snapshot(h.xid, w.upto)
       and h.pos > greatest($3, w.history_floor)
     order by h.pos limit $4)
    union all
    (select h.* from late l cross join lateral (
         select * from milepost.history h
         where h.xid = l.xid and h.pos > greatest($3, w.history_floor)
         order by h.pos limit $4
     ) h
     order by h.pos limit $4)
    order by pos
    limit $4
) h on true
left join lateral (select * from milepost.job j where j.id = h.job_id offset 0) j on true
order by h.pos
