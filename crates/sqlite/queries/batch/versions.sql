-- Returns the versions of DAG ?1, newest first.
SELECT v.id, v.name, v.number, v.version, v.id = (SELECT latest FROM milepost_dag WHERE name = ?1), v.tasks, v.edges,
       v.depth, v.created_at_ms
FROM milepost_dag_version v WHERE v.name = ?1
ORDER BY v.number DESC
