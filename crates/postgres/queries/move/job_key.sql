-- Imports keys.
insert into milepost.job_key (key, kind, job_id, job_ended_at)
select * from unnest($1::text[], $2::text[], $3::uuid[], $4::timestamptz[])
