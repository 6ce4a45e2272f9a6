-- The next $3 failures that bulk job $1 retries, after position $2 (JSON text; null: from the beginning), as a JSON array.
-- No row: the job does not retry failures.
select coalesce((select jsonb_agg(jsonb_build_object('pos', f.pos, 'key', f.key) order by f.pos)
                 from (select pos, key from milepost.bulk_failure
                       where retried_by = $1 and pos > coalesce(($2::text::jsonb ->> 0)::bigint, 0)
                       order by pos limit $3) f), '[]')::text as failed
from milepost.bulk b
where b.job_id = $1 and b.retry_of is not null
