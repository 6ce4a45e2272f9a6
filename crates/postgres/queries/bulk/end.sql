-- Ends run token $2 of bulk job $1 and its job as succeeded. No row: fenced.
with ended as (
    update milepost.bulk
    set ended_at = now(), updated_at = now(), throttle = null, throttle_since = null
    where job_id = $1 and token = $2 and ended_at is null
    returning jsonb_build_object('done', done, 'failed', failed, 'chunks', chunks) as result
)
select milepost.complete($1, $2, result) from ended
