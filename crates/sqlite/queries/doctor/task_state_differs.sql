-- Tasks whose state differs from that of their job or inner batch. A task whose job or batch does not exist can only be failed. Jobs that
-- are both live and ended, or neither, are not used.
WITH fact AS MATERIALIZED (SELECT * FROM milepost_batch_fact)
SELECT count(*) OVER () AS count, d.batch_id AS what, 'task ' || d.task || ' is ' || d.state || ', ' || d.why AS detail
FROM (
    SELECT t.batch_id, t.task, t.state,
           CASE WHEN t.child_id IS NOT NULL THEN
                    CASE WHEN c.id IS NULL AND t.state IN ('active', 'aborted') THEN 'failed'
                         WHEN f.state = 'running' THEN 'active' WHEN f.state = 'done' THEN 'succeeded' ELSE f.state END
                WHEN l.id IS NOT NULL AND e.id IS NOT NULL THEN NULL
                WHEN coalesce(l.state, e.state) IN ('blocked', 'pending', 'running', 'retry_wait') THEN 'active'
                WHEN coalesce(l.state, e.state) IS NOT NULL THEN coalesce(l.state, e.state)
                WHEN j.id IS NULL AND t.state IN ('active', 'aborted') AND (t.job_id IS NOT NULL OR NOT EXISTS (
                    SELECT 1 FROM milepost_batch_wait w WHERE w.batch_id = t.batch_id AND w.task = t.task)) THEN 'failed' END AS fact,
           CASE WHEN t.child_id IS NOT NULL AND c.id IS NULL THEN 'its batch is missing'
                WHEN t.child_id IS NOT NULL THEN 'its batch is ' || f.state
                WHEN coalesce(l.state, e.state) IS NOT NULL THEN 'its job is ' || coalesce(l.state, e.state)
                WHEN t.job_id IS NULL THEN 'it has no job'
                ELSE 'its job is missing' END AS why
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
