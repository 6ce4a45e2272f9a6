-- The last failure that bulk job $1 is to try again, and how many there are.
select max(pos), count(*) from milepost.bulk_failure where retried_by = $1
