-- Numbers of starts and ends of jobs after snapshot $1, by second and verb, with a sample of about $2 durations of the previous state in ms. One row
-- without a verb if there are none; no row at all if epoch $3 has ended.
with w as materialized (
    select $1::pg_snapshot as seen, pg_current_snapshot() as upto, e.history_floor
    from milepost.running_epoch e
    where e.id = $3
),
-- Transactions that were in flight at $1 and have ended since.
late as materialized (
    select x.xid from w cross join lateral pg_snapshot_xip(w.seen) x(xid) where pg_visible_in_snapshot(x.xid, w.upto)
),
happened as materialized (
    select h.pos, h.job_id, h.at, floor(extract(epoch from h.at))::bigint as at_s, h.verb
    from w
    cross join lateral (
        select * from milepost.history h
        where h.xid >= pg_snapshot_xmax(w.seen) and h.xid < pg_snapshot_xmax(w.upto) and pg_visible_in_snapshot(h.xid, w.upto)
        union all
        select h.* from late l cross join lateral (select * from milepost.history h where h.xid = l.xid offset 0) h
    ) h
    where h.pos > w.history_floor and h.verb in ('claim', 'succeed', 'retry', 'fail')
),
counted as materialized (select at_s, verb, count(*) as times from happened group by at_s, verb)
select w.upto::text as upto, pg_snapshot_xmax(w.upto) >= pg_snapshot_xmax(w.seen) as forward, c.at_s, c.verb::text as verb, c.times, t.took_ms
from w
left join counted c on true
left join lateral (
    select array_agg(greatest(floor(extract(epoch from h.at - greatest(p.at, p.ready_at)) * 1000), 0)::bigint) as took_ms
    from (
        select * from happened h
        where c.verb in ('claim', 'succeed') and h.at_s = c.at_s and h.verb = c.verb and random() * c.times < $2
    ) h
    cross join lateral (
        select * from milepost.history p where p.job_id = h.job_id and p.pos < h.pos order by p.pos desc limit 1
    ) p
    where p.to_state in ('pending', 'retry_wait', 'running')
) t on true
