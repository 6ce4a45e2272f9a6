-- Imports stored retention periods.
insert into milepost.retention_setting (name, keep_ms)
select * from unnest($1::text[], $2::bigint[])
