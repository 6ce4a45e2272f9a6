-- Returns the latest version of DAG ?1.
SELECT json_object('number', v.number, 'version', v.version, 'tasks', v.tasks)
FROM milepost_dag d JOIN milepost_dag_version v ON v.id = d.latest
WHERE d.name = ?1
