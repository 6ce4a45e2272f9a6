-- Imports failed targets of bulk jobs. $3 keys, as JSON text.
insert into milepost.bulk_failure (pos, job_id, key, code, message, at, retried_by)
overriding system value
select pos, job_id, milepost.key_of_texts(key::jsonb), code, message, at, retried_by
from unnest($1::bigint[], $2::uuid[], $3::text[], $4::text[], $5::text[], $6::timestamptz[], $7::uuid[])
    as r(pos, job_id, key, code, message, at, retried_by)
