-- Forgets up to $3 dead letters that failed more than $1 ms ago, oldest first and none from before $2, with all
-- that belongs to them. Their keys stay until $4 ms have passed since their failure (null: for ever). A job whose
-- history has more than $5 entries stays and loses that many; the next calls find the rest.
with due as materialized (
    select id, failed_at from milepost.live
    where failed_at is not null
      and failed_at < now() - $1::bigint * interval '1 millisecond'
      and failed_at >= coalesce($2::timestamptz, '-infinity')
    order by failed_at
    limit $3
    for update skip locked
),
long as materialized (
    select id, failed_at from due
    where exists (select from milepost.history h where h.job_id = due.id order by h.pos offset $5)
),
whole as materialized (
    select id from due where not exists (select from long where long.id = due.id)
),
letters as (
    delete from milepost.live l using whole w
    where l.id = w.id and l.state = 'failed'
    returning l.id, l.failed_at
),
jobs as (
    delete from milepost.job j using letters l where j.id = l.id returning j.id, j.kind, j.key, l.failed_at
),
forgotten as (
    delete from milepost.job_key k using jobs j
    where k.kind = j.kind and k.key = j.key and k.job_id = j.id
      and j.failed_at < now() - $4::bigint * interval '1 millisecond'
    returning 1
),
kept as (
    update milepost.job_key k set job_ended_at = j.failed_at from jobs j
    where k.kind = j.kind and k.key = j.key and k.job_id = j.id
      and (j.failed_at < now() - $4::bigint * interval '1 millisecond') is not true
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
            select pos from milepost.history where job_id = l.id order by pos limit $5
        ) e
    ) oldest
    where h.job_id = oldest.id and h.pos = oldest.pos
    returning 1
)
select (select count(*) from letters) as jobs,
       (select count(*) from letters) + (select count(*) from jobs) + (select count(*) from forgotten)
           + (select count(*) from reports) + (select count(*) from told) + (select count(*) from portion) as rows,
       coalesce((select min(failed_at) from long), (select max(failed_at) from due)) as reached,
       (select count(*) from due) >= $3 or exists (select from long) as more
