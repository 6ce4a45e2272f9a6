-- Returns the last of the next ?2 members after ?1.
SELECT max(id) FROM (SELECT id FROM milepost_bench_member WHERE id > ?1 ORDER BY id LIMIT ?2)
