-- Imports limits of kinds.
insert into milepost.kind_limit (kind, per_second, burst, portion, full_at, source)
select * from unnest($1::text[], $2::float8[], $3::int[], $4::int[], $5::timestamptz[], $6::text[])
