-- Imports buckets of groups.
insert into milepost.group_bucket (group_key, full_at, look_at, reserved)
select * from unnest($1::text[], $2::timestamptz[], $3::timestamptz[], $4::int[])
