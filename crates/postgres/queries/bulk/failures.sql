-- Up to $3 failed targets of bulk job $1, after position $2.
select pos, key::text as key, code, message, at, retried_by
from milepost.bulk_failure where job_id = $1 and pos > $2
order by pos limit $3
