-- Deletes waits of batches that do not exist, unless they have live jobs. $1 limit, in hundreds of rows; returns the
-- batches
with gone as (
    delete from milepost.batch_wait
    where batch_id in (
        select r.batch_id from milepost.batch_wait r
        where not exists (select from milepost.batch b where b.id = r.batch_id)
          and not exists (select from milepost.live l join milepost.job j on j.id = l.id where j.batch_id = r.batch_id)
        limit 100 * $1::bigint
    )
    returning batch_id
)
select batch_id::text from gone group by batch_id
