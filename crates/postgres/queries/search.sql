-- Jobs that match, among the $6 newest of a place that are older than $4 and not older than $5: $1 state, $2 kind, $3 queue,
-- $7 key, $8 created at or after this time, $9 created before this time, $10 failed at or after this time, $11 code or part
-- of the message of an error, $12 a path into the payload and $13 the value there (null: any of these); $14 limit. $15 the
-- place: jobs with this key, running jobs, live or ended jobs in the rare state $1, live jobs, ended jobs, or all jobs; the
-- other places are not read. Each row contains the position where the search ended, null: at the end; there is one row
-- without an id if nothing matches.
with looked_at as materialized (
    select * from (
        (select l.id, l.state, l.attempt, l.max_attempts, l.token, l.ready_at, l.started_at, null::timestamptz as ended_at, l.worker_id,
                l.failed_at
         from milepost.live l where $15::text in ('all', 'live') and l.id < $4 and l.id >= $5 order by l.id desc limit $6)
        union all
        (select e.id, e.state, e.attempt, e.max_attempts, e.token, null, e.started_at, e.ended_at, null, null
         from milepost.ended e where $15::text in ('all', 'ended') and e.id < $4 and e.id >= $5 order by e.id desc limit $6)
        union all
        (select l.id, l.state, l.attempt, l.max_attempts, l.token, l.ready_at, l.started_at, null, l.worker_id, l.failed_at
         from milepost.live l
         where $15::text = 'live_aside' and l.state <> 'pending' and l.state <> 'running'
           and (l.state, l.id) < ($1::text::milepost.job_state, $4::uuid) and l.state >= $1::text::milepost.job_state and l.id >= $5
         order by l.state desc, l.id desc limit $6)
        union all
        (select e.id, e.state, e.attempt, e.max_attempts, e.token, null, e.started_at, e.ended_at, null, null
         from milepost.ended e
         where $15::text = 'ended_aside' and e.state <> 'succeeded'
           and (e.state, e.id) < ($1::text::milepost.job_state, $4::uuid) and e.state >= $1::text::milepost.job_state and e.id >= $5
         order by e.state desc, e.id desc limit $6)
        union all
        -- Only few jobs run; worker_id is the only column with an index that contains nothing else.
        (select r.* from (
             select l.id, l.state, l.attempt, l.max_attempts, l.token, l.ready_at, l.started_at, null::timestamptz, l.worker_id, l.failed_at
             from milepost.live l where $15::text = 'running' and l.worker_id is not null order by l.worker_id offset 0
         ) r
         where r.id < $4 and r.id >= $5 order by r.id desc limit $6)
        union all
        (select s.*
         from (
             select k.id from milepost.job k where $15::text = 'key' and k.key = $7 and k.id < $4 and k.id >= $5 order by k.id desc limit $6
         ) k
         cross join lateral (
             (select l.id, l.state, l.attempt, l.max_attempts, l.token, l.ready_at, l.started_at, null::timestamptz, l.worker_id, l.failed_at
              from milepost.live l where l.id = k.id limit 1)
             union all
             (select e.id, e.state, e.attempt, e.max_attempts, e.token, null, e.started_at, e.ended_at, null, null
              from milepost.ended e where e.id = k.id limit 1)
         ) s)
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
