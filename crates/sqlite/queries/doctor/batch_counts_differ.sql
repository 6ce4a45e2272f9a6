-- Batches whose counts, state or end are not what their tasks say.
WITH fact AS MATERIALIZED (SELECT * FROM milepost_batch_fact)
SELECT count(*) OVER () AS count, d.id AS what,
       CASE WHEN d.was <> d.counts THEN 'counts ' || d.was || ' by state, its tasks are ' || d.counts
            WHEN d.state <> d.fact THEN 'stands as ' || d.state || ', its tasks say ' || d.fact
            WHEN d.has_end THEN 'has a time of its end, but is ' || d.state
            ELSE 'is ' || d.state || ', but has no time of its end' END AS detail
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
