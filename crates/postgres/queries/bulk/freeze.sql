-- Stores the last target $3 (JSON text; null: none) of bulk job $1 for run token $2, and the number of targets $4 (null:
-- unknown), counted or estimated ($5). No row: fenced.
update milepost.bulk
set upper_key = $3::text::jsonb, total = $4, total_exact = $5, surveyed_at = now(), updated_at = now(),
    throttle = null, throttle_since = null
where job_id = $1 and token = $2 and ended_at is null
returning 1
