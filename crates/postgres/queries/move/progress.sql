-- Imports progress that jobs reported. $5 checkpoints, as JSON text.
insert into milepost.progress (job_id, done, total, message, checkpoint, updated_at)
select job_id, done, total, message, checkpoint::jsonb, updated_at
from unnest($1::uuid[], $2::bigint[], $3::bigint[], $4::text[], $5::text[], $6::timestamptz[])
    as r(job_id, done, total, message, checkpoint, updated_at)
