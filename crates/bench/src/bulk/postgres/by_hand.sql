-- Creates a note of run $1 for each of the next $3 members after $2; returns the last of them.
with chunk as materialized (
    select id, place from milepost_bench_member where id > $2::bigint order by id limit $3::bigint
),
applied as (
    insert into milepost_bench_note (run, member, place) select $1::uuid, id, place from chunk
)
select max(id) from chunk
