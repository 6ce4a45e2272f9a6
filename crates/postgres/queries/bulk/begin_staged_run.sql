-- Registers job $1 as a bulk job over its $2 staged rows, whose last target is known.
with file as (
    update milepost.bulk_file set rows = $2, started_at = now(), touched_at = now() where run = $1
)
insert into milepost.bulk (job_id, origin, surveyed_at, upper_key, total, total_exact)
select $1, $1, now(), case when $2 > 0 then jsonb_build_array($2::bigint::text) end, $2, true
