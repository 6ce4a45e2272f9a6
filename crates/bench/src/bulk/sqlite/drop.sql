DROP TABLE IF EXISTS milepost_bench_note;
DROP TABLE IF EXISTS milepost_bench_member;
