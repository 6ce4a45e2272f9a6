-- Deletes jobs after their retention period, with all their rows: ended jobs in the blocks of ended from $8 up to $9, at
-- most $7, and at most as many dead letters, oldest first and none from before $4. Periods in ms, null: keep forever: $1
-- succeeded, $2 canceled and skipped, $3 failed, $5 their keys. A job that has more than $6 entries of history or failed
-- targets is kept and loses that many; the next calls delete the rest. A failure belongs to the run that retries it,
-- otherwise to the run in which it occurred.
with ended as materialized (
    select id, ended_at as over_at, (ctid::text::point)[0]::bigint as block from milepost.ended
    where ctid >= $8::text::tid and ctid < $9::text::tid
      and ended_at < now() - case when state = 'succeeded' then $1::bigint else $2::bigint end * interval '1 millisecond'
      -- Jobs of a batch are kept as long as the batch.
      and not exists (select from milepost.job j join milepost.batch b on b.id = j.batch_id where j.id = ended.id)
    limit $7
    for update skip locked
),
letters as materialized (
    select id, failed_at as over_at from milepost.live
    where failed_at is not null
      and failed_at < now() - $3::bigint * interval '1 millisecond'
      and failed_at >= coalesce($4::timestamptz, '-infinity')
      and not exists (select from milepost.job j join milepost.batch b on b.id = j.batch_id where j.id = live.id)
    order by failed_at
    limit $7
    for update skip locked
),
due as materialized (
    select id, over_at, false as is_letter, block from ended
    union all
    select id, over_at, true, null from letters
),
measured as materialized (
    select id, over_at, is_letter, block,
           exists (select from milepost.history h where h.job_id = due.id order by h.pos offset $6) as long_history,
           exists (select from milepost.bulk_failure f where f.job_id = due.id and f.retried_by is null order by f.pos offset $6)
               as many_own,
           exists (select from milepost.bulk_failure f where f.retried_by = due.id order by f.pos offset $6) as many_taken
    from due
),
long as materialized (
    select id, over_at, is_letter, block, long_history, many_own, many_taken from measured
    where long_history or many_own or many_taken
),
whole as materialized (
    select id, over_at, is_letter from due where not exists (select from long where long.id = due.id)
),
ended_gone as (
    delete from milepost.ended e using whole w
    where not w.is_letter and e.id = w.id
    returning e.id, w.over_at, e.state
),
letters_gone as (
    delete from milepost.live l using whole w
    where w.is_letter and l.id = w.id and l.state = 'failed'
    returning l.id, w.over_at, l.state
),
gone as materialized (
    select id, over_at, state from ended_gone union all select id, over_at, state from letters_gone
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
heads as (
    delete from milepost.aggregate a using jobs j
    where a.aggregate_type = 'milepost.job.' || j.kind and a.aggregate_id = j.id::text
    returning 1
),
reports as (
    delete from milepost.progress p using whole w where p.job_id = w.id returning 1
),
told as (
    delete from milepost.history h using whole w where h.job_id = w.id returning 1
),
runs as (
    delete from milepost.bulk b using whole w where b.job_id = w.id returning b.origin
),
files as (
    -- Staged rows are deleted in portions, once no run needs them.
    update milepost.bulk_file f set touched_at = now() from runs r where f.run = r.origin
),
set_by_hand as (
    delete from milepost.bulk_setting s using whole w where s.job_id = w.id returning 1
),
own_failures as (
    delete from milepost.bulk_failure f using whole w where f.job_id = w.id and f.retried_by is null returning 1
),
taken_failures as (
    delete from milepost.bulk_failure f using whole w where f.retried_by = w.id returning 1
),
own_portion as (
    delete from milepost.bulk_failure f
    using (
        select l.id, e.pos from (select id from long where many_own limit 1) l
        cross join lateral (
            select pos from milepost.bulk_failure where job_id = l.id and retried_by is null order by pos limit $6
        ) e
    ) oldest
    where f.job_id = oldest.id and f.pos = oldest.pos and f.retried_by is null
    returning 1
),
taken_portion as (
    delete from milepost.bulk_failure f
    using (
        select l.id, e.job_id, e.pos from (select id from long where many_taken limit 1) l
        cross join lateral (
            select job_id, pos from milepost.bulk_failure where retried_by = l.id order by pos limit $6
        ) e
    ) oldest
    where f.job_id = oldest.job_id and f.pos = oldest.pos and f.retried_by = oldest.id
    returning 1
),
portion as (
    delete from milepost.history h
    using (
        select l.id, e.pos from (select id from long where long_history limit 1) l
        cross join lateral (
            select pos from milepost.history where job_id = l.id order by pos limit $6
        ) e
    ) oldest
    where h.job_id = oldest.id and h.pos = oldest.pos
    returning 1
)
select (select count(*) from gone where state = 'succeeded') as succeeded,
       (select count(*) from gone where state in ('canceled', 'skipped')) as canceled,
       (select count(*) from gone where state = 'failed') as failed,
       (select count(*) from gone) + (select count(*) from jobs) + (select count(*) from forgotten)
           + (select count(*) from heads) + (select count(*) from reports) + (select count(*) from told) + (select count(*) from portion)
           + (select count(*) from runs) + (select count(*) from set_by_hand) + (select count(*) from own_failures)
           + (select count(*) from taken_failures) + (select count(*) from own_portion)
           + (select count(*) from taken_portion) as rows,
       coalesce((select min(block) from long), (select max(block) from ended having count(*) >= $7)) as block_left,
       pg_relation_size('milepost.ended') / current_setting('block_size')::bigint as blocks,
       coalesce((select min(over_at) from long where is_letter), (select max(over_at) from letters)) as letters_reached,
       (select count(*) from letters) >= $7 or exists (select from long where is_letter) as more_letters
