-- Returns the latest version of every DAG, by name.
SELECT v.id, v.name, v.number, v.version, 1, v.tasks, v.edges, v.depth, v.created_at_ms
FROM milepost_dag d CROSS JOIN milepost_dag_version v ON v.id = d.latest
ORDER BY d.name
