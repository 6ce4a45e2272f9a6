-- Batches that have not ended and whose version, input or tasks are incomplete.
SELECT count(*) OVER () AS count, d.id AS what,
       CASE WHEN d.asked IS NULL THEN 'its version is missing' WHEN NOT d.has_input THEN 'its input is missing'
            ELSE 'tasks found: ' || d.found || ', expected: ' || d.asked END AS detail
FROM (
    SELECT b.id, i.batch_id IS NOT NULL AS has_input, coalesce(t.found, 0) AS found,
           iif(b.items_of IS NULL OR v.id IS NULL, v.tasks, coalesce(json_array_length(i.input), 0)) AS asked
    FROM milepost_batch b
    LEFT JOIN milepost_dag_version v ON v.id = b.version_id
    LEFT JOIN milepost_batch_input i ON i.batch_id = b.id
    LEFT JOIN (SELECT batch_id, count(*) AS found FROM milepost_batch_task GROUP BY batch_id) t ON t.batch_id = b.id
    WHERE b.ended_at_ms IS NULL
) d
WHERE NOT d.has_input OR d.found IS DISTINCT FROM d.asked
ORDER BY what
LIMIT 10
