-- Creates ?1 members.
WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < ?1)
INSERT INTO milepost_bench_member (id, place, name) SELECT n * 3, n % 1000, 'member ' || n FROM n
