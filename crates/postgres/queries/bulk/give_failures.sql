-- Gives the failures of bulk job $1 that nobody tries again to bulk job $2.
update milepost.bulk_failure set retried_by = $2 where job_id = $1 and retried_by is null
