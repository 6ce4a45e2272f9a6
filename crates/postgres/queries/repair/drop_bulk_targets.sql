-- Deletes staged rows without a file. $1 limit, in hundreds of rows; returns the runs
with gone as (
    delete from milepost.bulk_target
    where (run, n) in (
        select t.run, t.n from milepost.bulk_target t
        where not exists (select from milepost.bulk_file f where f.run = t.run) limit 100 * $1::bigint
    )
    returning run
)
select run::text from gone group by run
