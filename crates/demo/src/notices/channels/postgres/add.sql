-- Adds channels $2 at the points ($3, $4, $5) to world $1; existing ones are unchanged.
insert into milepost_demo_channel (world, id, x, y, z)
select $1, * from unnest($2::bigint[], $3::float8[], $4::float8[], $5::float8[])
on conflict do nothing
