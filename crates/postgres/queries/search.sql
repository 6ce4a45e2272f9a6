-- Jobs that fit, among the $6 newest that are older than $4 and no older than $5: $1 state, $2 kind, $3 queue, $7 key, $8 created at this time
-- or later, $9 before this time, $10 failed at this time or later, $11 code or words of an error, $12 a path into the payload and $13 what is
-- there (null: any of these); at most $14. Each row says where the look ended, null: at the end; one row without an id when nothing fits.
with looked_at as materialized (
    select * from (
        (select l.id, l.state, l.attempt, l.max_attempts, l.token, l.ready_at, l.started_at, null::timestamptz as ended_at, l.worker_id,
                l.failed_at
         from milepost.live l where l.id < $4 and l.id >= $5 order by l.id desc limit $6)
        union all
        (select e.id, e.state, e.attempt, e.max_attempts, e.token, null, e.started_at, e.ended_at, null, null
         from milepost.ended e where e.id < $4 and e.id >= $5 order by e.id desc limit $6)
    ) s
    order by s.id desc
    limit $6
),
found as materialized (
    select s.id, j.kind, j.queue, s.state::text as state, j.priority, s.attempt, s.max_attempts, j.key, j.group_key, j.created_at, j.nominal_at,
           s.ready_at, s.started_at, s.ended_at, s.worker_id, s.token
    from looked_at s
    cross join lateral (select * from milepost.job where id = s.id limit 1) j
    where ($1::text is null or s.state = $1::text::milepost.job_state) and ($2::text is null or j.kind = $2)
      and ($3::text is null or j.queue = $3) and ($7::text is null or j.key = $7)
      and ($8::timestamptz is null or j.created_at >= $8) and ($9::timestamptz is null or j.created_at < $9)
      and ($10::timestamptz is null or s.failed_at >= $10)
      and ($12::text[] is null or j.payload #> $12 = $13::text::jsonb)
      and ($11::text is null or exists (
              select from milepost.history h
              where h.job_id = s.id and (h.error_code = $11 or position(lower($11) in lower(h.error_message)) > 0)))
    order by s.id desc
    limit $14
),
reached as (
    select case when count(*) = $6 then (select id from looked_at order by id limit 1) end as looked_to from looked_at
)
select r.looked_to, f.* from reached r left join found f on true order by f.id desc
