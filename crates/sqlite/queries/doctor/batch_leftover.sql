-- Rows of batches that do not exist.
SELECT count(*) OVER () AS count, r.batch_id AS what, r.detail
FROM (
    SELECT t.batch_id, count(*) || ' tasks' AS detail FROM milepost_batch_task t GROUP BY t.batch_id
    UNION ALL
    SELECT i.batch_id, 'an input' FROM milepost_batch_input i
    UNION ALL
    SELECT w.batch_id, count(*) || ' waits' FROM milepost_batch_wait w GROUP BY w.batch_id
    UNION ALL
    SELECT s.batch_id, count(*) || ' signals' FROM milepost_batch_signal s GROUP BY s.batch_id
    UNION ALL
    SELECT s.batch_id, count(*) || ' ends of tasks to be counted' FROM milepost_batch_spread s GROUP BY s.batch_id
    UNION ALL
    SELECT h.batch_id, count(*) || ' history entries' FROM milepost_batch_history h GROUP BY h.batch_id
) r
WHERE NOT EXISTS (SELECT 1 FROM milepost_batch b WHERE b.id = r.batch_id)
ORDER BY what, r.detail
LIMIT 10
