-- Tasks that stand elsewhere than their job or their inner batch. One whose job or batch is gone can only be failed. Jobs that
-- are in their places twice or not at all say nothing.
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
SELECT count(*) OVER () AS count, d.batch_id AS what, 'task ' || d.task || ' stands as ' || d.state || ', ' || d.why AS detail
FROM (
    SELECT t.batch_id, t.task, t.state,
           CASE WHEN t.child_id IS NOT NULL THEN
                    CASE WHEN c.id IS NULL AND t.state IN ('active', 'aborted') THEN 'failed'
                         WHEN f.state = 'running' THEN 'active' WHEN f.state = 'done' THEN 'succeeded' ELSE f.state END
                WHEN l.id IS NOT NULL AND e.id IS NOT NULL THEN NULL
                WHEN coalesce(l.state, e.state) IN ('blocked', 'pending', 'running', 'retry_wait') THEN 'active'
                WHEN coalesce(l.state, e.state) IS NOT NULL THEN coalesce(l.state, e.state)
                WHEN j.id IS NULL AND t.state IN ('active', 'aborted') THEN 'failed' END AS fact,
           CASE WHEN t.child_id IS NOT NULL AND c.id IS NULL THEN 'its batch is gone'
                WHEN t.child_id IS NOT NULL THEN 'its batch is ' || f.state
                WHEN coalesce(l.state, e.state) IS NOT NULL THEN 'its job is ' || coalesce(l.state, e.state)
                WHEN t.job_id IS NULL THEN 'it has no job'
                ELSE 'its job is gone' END AS why
    FROM fact a
    CROSS JOIN milepost_batch_task t ON t.batch_id = a.id
    LEFT JOIN milepost_job j ON j.id = t.job_id
    LEFT JOIN milepost_live l ON l.id = t.job_id
    LEFT JOIN milepost_ended e ON e.id = t.job_id
    LEFT JOIN milepost_batch c ON c.id = t.child_id
    LEFT JOIN fact f ON f.id = t.child_id
) d
WHERE d.fact <> d.state
ORDER BY what, d.task
LIMIT 10
