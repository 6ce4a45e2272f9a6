-- Batches whose counts, state or end are not what their tasks say.
WITH tally AS (
    SELECT batch_id, count(*) AS tasks, count(*) FILTER (WHERE state = 'waiting') AS waiting, count(*) FILTER (WHERE state = 'due') AS due,
           count(*) FILTER (WHERE state = 'active') AS active, count(*) FILTER (WHERE state = 'failed') AS failed,
           count(*) FILTER (WHERE state = 'aborted') AS aborted, count(*) FILTER (WHERE state = 'succeeded') AS succeeded,
           count(*) FILTER (WHERE state = 'skipped') AS skipped, count(*) FILTER (WHERE state = 'canceled') AS canceled
    FROM milepost_batch_task GROUP BY batch_id
),
-- What the tasks of a batch say, where all are there: retention has not begun with it.
fact AS MATERIALIZED (
    SELECT b.id, t.*,
           CASE WHEN t.active > 0 OR (t.due > 0 AND b.stop IS NULL) THEN 'running'
                WHEN t.waiting + t.due + t.aborted + t.failed > 0 AND EXISTS (SELECT 1 FROM milepost_batch_spread s WHERE s.batch_id = b.id) THEN 'running'
                WHEN t.aborted > 0 OR (b.stop IS NOT NULL AND t.waiting + t.due > 0) THEN 'aborted'
                WHEN t.failed > 0 THEN 'failed'
                WHEN t.waiting + t.due > 0 THEN 'running'
                WHEN t.canceled > 0 THEN 'canceled'
                ELSE 'done' END AS state
    FROM milepost_batch b
    CROSS JOIN tally t ON t.batch_id = b.id
    LEFT JOIN milepost_dag_version v ON v.id = b.version_id
    LEFT JOIN milepost_batch_input i ON i.batch_id = b.id AND b.items_of IS NOT NULL
    WHERE t.tasks = iif(b.items_of IS NULL, v.tasks, json_array_length(i.input))
)
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
