-- Tasks whose counters contradict the states of their predecessors, and tasks that wait although they could be decided. Tasks after a task
-- whose end is still being counted are not checked.
WITH fact AS MATERIALIZED (SELECT * FROM milepost_batch_fact),
known AS (
    SELECT t.batch_id, t.task, t.state, coalesce(k.rule, 'all_success') AS rule, t.pre_cnt, t.succeeded, t.failed, t.skipped, t.canceled,
           count(p.task) FILTER (WHERE p.state IN ('waiting', 'due', 'active', 'aborted')) AS open_is,
           count(p.task) FILTER (WHERE p.state = 'succeeded') AS succeeded_is, count(p.task) FILTER (WHERE p.state = 'failed') AS failed_is,
           count(p.task) FILTER (WHERE p.state = 'skipped') AS skipped_is, count(p.task) FILTER (WHERE p.state = 'canceled') AS canceled_is
    FROM fact f
    CROSS JOIN milepost_batch b ON b.id = f.id
    CROSS JOIN milepost_batch_task t ON t.batch_id = b.id
    LEFT JOIN milepost_dag_task k ON k.version_id = b.version_id AND k.task = t.task AND b.items_of IS NULL
    LEFT JOIN json_each(k.predecessors) u
    LEFT JOIN milepost_batch_task p ON p.batch_id = t.batch_id AND p.task = u.value
    GROUP BY t.batch_id, t.task
    HAVING NOT max(EXISTS (SELECT 1 FROM milepost_batch_spread s WHERE s.batch_id = p.batch_id AND s.task = p.task))
)
SELECT count(*) OVER () AS count, d.batch_id AS what,
       'task ' || d.task || iif(
           d.counts, ' is waiting, but its predecessors already decide whether it runs',
           ' counts ' || concat_ws(' ', d.pre_cnt, d.succeeded, d.failed, d.skipped, d.canceled)
               || ' open, succeeded, failed, skipped and canceled predecessors; their states give '
               || concat_ws(' ', d.open_is, d.succeeded_is, d.failed_is, d.skipped_is, d.canceled_is)) AS detail
FROM (
    SELECT k.*,
           (pre_cnt, succeeded, failed, skipped, canceled) = (open_is, succeeded_is, failed_is, skipped_is, canceled_is) AS counts,
           state = 'waiting' AND CASE
               WHEN rule = 'all_success' AND skipped_is + canceled_is > 0 THEN 1
               WHEN rule = 'none_failed' AND canceled_is > 0 THEN 1
               WHEN open_is > 0 THEN 0
               WHEN rule IN ('all_success', 'none_failed') THEN failed_is = 0
               WHEN rule = 'one_success' THEN succeeded_is > 0 OR failed_is = 0
               ELSE 1 END AS decided
    FROM known k
) d
WHERE NOT d.counts OR d.decided
ORDER BY what, d.task
LIMIT 10
