-- Counts by periods of $1 seconds, in the $2 periods that end now, of queue $3 and kind $4 (null: of all). $5: the lengths of the periods that are stored. $6, $7: only
-- of queues and kinds like one of these (null: of all). One row without a verb if there are none.
select t.now_s, t.upto_s, extract(epoch from c.period)::bigint as at_s, c.verb::text as verb, c.bucket, c.times
from (
    select floor(extract(epoch from now()))::bigint as now_s,
           (select floor(extract(epoch from p.at))::bigint from milepost.rollup_position p) as upto_s
) t
left join (
    select date_bin(make_interval(secs => $1::int), r.starts_at, 'epoch') as period, r.verb, r.bucket, sum(r.times)::bigint as times
    from milepost.rollup r
    where r.step_s = any ($5::int[])
      and r.starts_at >= date_bin(make_interval(secs => $1::int), now(), 'epoch') - make_interval(secs => $1::int * ($2::int - 1))
      and ($3::text is null or r.queue = $3) and ($4::text is null or r.kind = $4)
      and ($6::text[] is null or r.queue like any ($6)) and ($7::text[] is null or r.kind like any ($7))
    group by period, r.verb, r.bucket
) c on true
