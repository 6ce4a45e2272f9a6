-- Forgets up to $4 jobs that have been $1 (succeeded, canceled, skipped or failed) for more than $2 ms, oldest first
-- and none from before $3, with all that belongs to them. Their keys stay until $5 ms have passed since then (null:
-- for ever). A job whose history has more than $6 entries stays and loses that many; the next calls find the rest.
with ended as materialized (
    select id, ended_at as over_at from milepost.ended
    where state = $1::text::milepost.job_state
      and ended_at < now() - $2::bigint * interval '1 millisecond'
      and ended_at >= coalesce($3::timestamptz, '-infinity')
    order by ended_at
    limit $4
    for update skip locked
),
letters as materialized (
    select id, failed_at as over_at from milepost.live
    where $1 = 'failed' and failed_at is not null
      and failed_at < now() - $2::bigint * interval '1 millisecond'
      and failed_at >= coalesce($3::timestamptz, '-infinity')
    order by failed_at
    limit $4
    for update skip locked
),
due as materialized (
    select id, over_at, false as is_letter from ended
    union all
    select id, over_at, true from letters
),
long as materialized (
    select id, over_at from due
    where exists (select from milepost.history h where h.job_id = due.id order by h.pos offset $6)
),
whole as materialized (
    select id, over_at, is_letter from due where not exists (select from long where long.id = due.id)
),
ended_gone as (
    delete from milepost.ended e using whole w
    where not w.is_letter and e.id = w.id
    returning e.id, w.over_at
),
letters_gone as (
    delete from milepost.live l using whole w
    where w.is_letter and l.id = w.id and l.state = 'failed'
    returning l.id, w.over_at
),
gone as materialized (
    select id, over_at from ended_gone union all select id, over_at from letters_gone
),
jobs as (
    delete from milepost.job j using gone g where j.id = g.id returning j.id, j.kind, j.key, g.over_at
),
forgotten as (
    delete from milepost.job_key k using jobs j
    where k.kind = j.kind and k.key = j.key and k.job_id = j.id
      and j.over_at < now() - $5::bigint * interval '1 millisecond'
    returning 1
),
kept as (
    update milepost.job_key k set job_ended_at = j.over_at from jobs j
    where k.kind = j.kind and k.key = j.key and k.job_id = j.id
      and (j.over_at < now() - $5::bigint * interval '1 millisecond') is not true
),
reports as (
    delete from milepost.progress p using whole w where p.job_id = w.id returning 1
),
told as (
    delete from milepost.history h using whole w where h.job_id = w.id returning 1
),
portion as (
    delete from milepost.history h
    using (
        select l.id, e.pos from (select id from long limit 1) l
        cross join lateral (
            select pos from milepost.history where job_id = l.id order by pos limit $6
        ) e
    ) oldest
    where h.job_id = oldest.id and h.pos = oldest.pos
    returning 1
)
select (select count(*) from gone) as jobs,
       (select count(*) from gone) + (select count(*) from jobs) + (select count(*) from forgotten)
           + (select count(*) from reports) + (select count(*) from told) + (select count(*) from portion) as rows,
       coalesce((select min(over_at) from long), (select max(over_at) from due)) as reached,
       (select count(*) from due) >= $4 or exists (select from long) as more
