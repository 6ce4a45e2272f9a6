-- Forgets up to $4 jobs that ended as $1 more than $2 ms ago, oldest first and none from before $3, with all that
-- belongs to them. Their keys stay until $5 ms have passed since their end (null: for ever). A job whose history
-- has more than $6 entries stays and loses that many; the next calls find the rest.
with due as materialized (
    select id, ended_at from milepost.ended
    where state = $1::text::milepost.job_state
      and ended_at < now() - $2::bigint * interval '1 millisecond'
      and ended_at >= coalesce($3::timestamptz, '-infinity')
    order by ended_at
    limit $4
    for update skip locked
),
long as materialized (
    select id, ended_at from due
    where exists (select from milepost.history h where h.job_id = due.id order by h.pos offset $6)
),
whole as materialized (
    select id from due where not exists (select from long where long.id = due.id)
),
ends as (
    delete from milepost.ended e using whole w where e.id = w.id returning e.id, e.ended_at
),
jobs as (
    delete from milepost.job j using ends e where j.id = e.id returning j.id, j.kind, j.key, e.ended_at
),
forgotten as (
    delete from milepost.job_key k using jobs j
    where k.kind = j.kind and k.key = j.key and k.job_id = j.id
      and j.ended_at < now() - $5::bigint * interval '1 millisecond'
    returning 1
),
kept as (
    update milepost.job_key k set job_ended_at = j.ended_at from jobs j
    where k.kind = j.kind and k.key = j.key and k.job_id = j.id
      and (j.ended_at < now() - $5::bigint * interval '1 millisecond') is not true
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
select (select count(*) from ends) as jobs,
       (select count(*) from ends) + (select count(*) from jobs) + (select count(*) from forgotten)
           + (select count(*) from reports) + (select count(*) from told) + (select count(*) from portion) as rows,
       coalesce((select min(ended_at) from long), (select max(ended_at) from due)) as reached,
       (select count(*) from due) >= $4 or exists (select from long) as more
