-- Stores the failure of target $2 (key as JSON text) of bulk job $1, with code $3 and message $4. In a run that retries the
-- failures of another, the key is the position of a failure; the target of that failure is stored.
insert into milepost.bulk_failure (job_id, key, code, message)
select $1, coalesce(
    (select f.key
     from milepost.bulk b
     join milepost.bulk_failure f on f.retried_by = b.job_id and f.pos::text = $2::text::jsonb ->> 0
     where b.job_id = $1 and b.retry_of is not null),
    $2::text::jsonb), $3, $4
