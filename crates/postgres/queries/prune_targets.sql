-- Deletes up to $1 rows of a file whose runs are all deleted, or whose staging was interrupted more than an hour ago; the
-- file is deleted with its last row.
with file as materialized (
    select f.run from milepost.bulk_file f
    where case when f.started_at is null then f.touched_at < now() - interval '1 hour'
               else not exists (select from milepost.bulk b where b.origin = f.run) end
    limit 1
    for update skip locked
),
targets as (
    delete from milepost.bulk_target t
    using (
        select f.run, r.n from file f
        cross join lateral (select n from milepost.bulk_target where run = f.run order by n limit $1) r
    ) portion
    where t.run = portion.run and t.n = portion.n
    returning 1
),
counted as materialized (
    select count(*) as rows from targets
),
gone as (
    delete from milepost.bulk_file b using file f, counted c where b.run = f.run and c.rows < $1 returning 1
),
touched as (
    update milepost.bulk_file b set touched_at = now() from file f, counted c
    where b.run = f.run and b.started_at is not null and c.rows >= $1
)
select (select rows from counted) + (select count(*) from gone) as rows, exists (select from file) as more
