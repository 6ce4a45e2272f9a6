-- Deletes staged files of bulk jobs that do not exist, if their deletion by retention is long overdue. $1 limit
delete from milepost.bulk_file
where run in (
    select f.run from milepost.bulk_file f
    where f.touched_at < now() - interval '3 hours'
      and (f.started_at is null or not exists (select from milepost.bulk b where b.origin = f.run))
    limit $1
)
returning run::text
