-- Numbers of starts and ends of jobs after snapshot $1, by minute and verb, with a random sample of all of them of about $4 changes: queue, kind, and ms in the
-- state before (-1: not known). $3: the last position in the history at $1. One row without a verb if there are none; no row at all if epoch $2 has ended.
-- Every row that the statement sees is visible in its own snapshot, so that is not checked again for each of them.
with w as materialized (
    select $1::pg_snapshot as seen, pg_current_snapshot() as upto, e.history_floor, s.last_value as pos,
           $4::float8 / greatest(s.last_value - $3, 1) as share
    from milepost.running_epoch e cross join milepost.history_pos_seq s
    where e.id = $2
),
-- Transactions that were in flight at $1 and have ended since.
late as materialized (
    select x.xid from w cross join lateral pg_snapshot_xip(w.seen) x(xid) where pg_visible_in_snapshot(x.xid, w.upto)
),
counted as materialized (
    select date_bin('1 minute', h.at, 'epoch') as minute, h.verb, count(*) as times,
           array_agg((h.job_id, h.pos, h.at)) filter (where random() < w.share) as sample
    from w
    cross join lateral (
        select h.job_id, h.pos, h.at, h.verb from milepost.history h
        where h.xid >= pg_snapshot_xmax(w.seen) and h.xid < pg_snapshot_xmax(w.upto)
        union all
        select h.job_id, h.pos, h.at, h.verb from late l cross join lateral (select * from milepost.history h where h.xid = l.xid offset 0) h
    ) h
    where h.verb in ('claim', 'succeed', 'retry', 'fail') and h.pos > w.history_floor
    group by 1, 2
)
select w.upto::text as upto, pg_snapshot_xmax(w.upto) >= pg_snapshot_xmax(w.seen) as forward, w.pos,
       extract(epoch from c.minute)::bigint as at_s, c.verb::text as verb, c.times, t.queues, t.kinds, t.took_ms
from w
left join counted c on true
left join lateral (
    select array_agg(j.queue) as queues, array_agg(j.kind) as kinds, array_agg(coalesce(p.took_ms, -1)) as took_ms
    from unnest(c.sample) h(job_id uuid, pos bigint, at timestamptz)
    left join lateral (select * from milepost.job j where j.id = h.job_id offset 0) j on true
    left join lateral (
        select case when p.to_state in ('pending', 'retry_wait', 'running')
                   then greatest(floor(extract(epoch from h.at - greatest(p.at, p.ready_at)) * 1000), 0)::bigint end as took_ms
        from milepost.history p where p.job_id = h.job_id and p.pos < h.pos order by p.pos desc limit 1
    ) p on true
) t on true
