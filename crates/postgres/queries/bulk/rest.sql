-- Stores the reason $3 that holds run token $2 of bulk job $1 (null: none any more), and that it was held for $4 more ms.
update milepost.bulk
set throttle = $3::text,
    throttle_since = case when $3 is null then null else coalesce(throttle_since, now()) end,
    held_ms = held_ms + $4,
    updated_at = now()
where job_id = $1 and token = $2 and ended_at is null
