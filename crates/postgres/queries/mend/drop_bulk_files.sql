-- Deletes staged files of bulk jobs that are gone, which retention has not come to for long. $1 at most
delete from milepost.bulk_file
where run in (
    select f.run from milepost.bulk_file f
    where f.touched_at < now() - interval '3 hours'
      and (f.started_at is null or not exists (select from milepost.bulk b where b.origin = f.run))
    limit $1
)
returning run::text
