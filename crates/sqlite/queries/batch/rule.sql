-- Returns the trigger rule of a task, and whether its definition needs no evaluation. ?1 version, ?2 task
SELECT rule, plain FROM milepost_dag_task WHERE version_id = ?1 AND task = ?2
