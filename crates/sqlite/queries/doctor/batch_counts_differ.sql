-- Batches whose counts, state or end contradict their tasks.
WITH fact AS MATERIALIZED (SELECT * FROM milepost_batch_fact)
SELECT count(*) OVER () AS count, d.id AS what,
       CASE WHEN d.was <> d.counts THEN 'its counts by state are ' || d.was || ', those of its tasks are ' || d.counts
            WHEN d.state <> d.fact THEN 'its state is ' || d.state || ', by its tasks it is ' || d.fact
            WHEN d.has_end THEN 'has an end time, but is ' || d.state
            ELSE 'is ' || d.state || ', but has no end time' END AS detail
FROM (
    SELECT b.id, b.state, f.state AS fact, b.ended_at_ms IS NOT NULL AS has_end,
           concat_ws(' ', b.waiting, b.due, b.active, b.failed, b.aborted, b.succeeded, b.skipped, b.canceled) AS was,
           concat_ws(' ', f.waiting, f.due, f.active, f.failed, f.aborted, f.succeeded, f.skipped, f.canceled) AS counts
    FROM fact f
    CROSS JOIN milepost_batch b ON b.id = f.id
) d
WHERE d.was <> d.counts OR d.state <> d.fact OR d.has_end <> (d.fact IN ('done', 'canceled'))
ORDER BY what
LIMIT 10
