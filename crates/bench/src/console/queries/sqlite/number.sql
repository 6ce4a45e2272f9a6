-- Computes jobs ?1 to ?2 (exclusive) of ?3, created over the 20 days before ?4 (ms since 1970) and run by worker ?5, with the same
-- properties as in the fill.sql of PostgreSQL.
INSERT INTO temp.made (n, at_ms, id, kind, queue, key, state, worker_id)
WITH RECURSIVE number (n) AS (
    SELECT ?1
    UNION ALL
    SELECT n + 1 FROM number WHERE n + 1 < ?2
)
SELECT n, at_ms,
       unhex(printf('%012x7%03x8%05x%010x', at_ms, (n >> 20) & 4095, n & 1048575, n % 1048573)),
       CASE n % 8 WHEN 0 THEN 'mail' WHEN 1 THEN 'invoice' WHEN 2 THEN 'report' WHEN 3 THEN 'sync'
                  WHEN 4 THEN 'thumbnail' WHEN 5 THEN 'export' WHEN 6 THEN 'score' ELSE 'notify' END,
       CASE n % 3 WHEN 0 THEN 'default' WHEN 1 THEN 'night' ELSE 'bulk' END,
       CASE WHEN n % 10 = 0 THEN 'order-' || n END,
       CASE WHEN n >= ?3 - ?3 / 5 THEN 'pending' WHEN n % 101 = 0 THEN 'failed' ELSE 'succeeded' END,
       ?5
FROM (
    SELECT n, ?4 - 1728000000 + (1728000000 - 60000) * n / ?3 AS at_ms FROM number
)
