-- The last failure that bulk job $1 retries, and the number of them.
select max(pos), count(*) from milepost.bulk_failure where retried_by = $1
