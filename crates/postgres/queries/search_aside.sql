-- As search.sql, among jobs that neither wait for a worker nor run ($1: blocked, retry_wait, failed or aborted), of which live_aside has only those.
with looked_at as materialized (
    select l.*
    from milepost.live l
    where l.state <> 'pending' and l.state <> 'running'
      and (l.state, l.id) < ($1::text::milepost.job_state, $4::uuid) and l.state >= $1::text::milepost.job_state and l.id >= $5
    order by l.state desc, l.id desc
    limit $6
),
found as materialized (
    select s.id, j.kind, j.queue, s.state::text as state, j.priority, s.attempt, s.max_attempts, j.key, j.group_key, j.created_at, j.nominal_at,
           s.ready_at, s.started_at, null::timestamptz as ended_at, s.worker_id, s.token
    from looked_at s
    cross join lateral (select * from milepost.job where id = s.id limit 1) j
    where ($2::text is null or j.kind = $2) and ($3::text is null or j.queue = $3) and ($7::text is null or j.key = $7)
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
