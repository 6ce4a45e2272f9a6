-- Returns, for task ?2 of version ?1, the number of the same task in version ?3.
SELECT n.task
FROM milepost_dag_task o
CROSS JOIN milepost_dag_task n ON n.version_id = ?3 AND n.key = o.key
WHERE o.version_id = ?1 AND o.task = ?2
