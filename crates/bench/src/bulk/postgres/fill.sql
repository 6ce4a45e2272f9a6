-- Creates $1 members.
insert into milepost_bench_member (id, place, name)
select n * 3, n % 1000, 'member ' || n from generate_series(1, $1::bigint) n
