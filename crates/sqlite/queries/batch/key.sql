-- Returns the key of task ?2 of version ?1.
SELECT key FROM milepost_dag_task WHERE version_id = ?1 AND task = ?2
