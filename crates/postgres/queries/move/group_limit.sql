-- Imports limits of groups.
insert into milepost.group_limit (name, slots, per_second, burst, portion, source)
select * from unnest($1::text[], $2::int[], $3::float8[], $4::int[], $5::int[], $6::text[])
