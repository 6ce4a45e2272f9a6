drop table if exists milepost_bench_note, milepost_bench_member
