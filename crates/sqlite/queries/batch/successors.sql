-- Returns the successors of a task. ?1 version, ?2 task
SELECT successors FROM milepost_dag_task WHERE version_id = ?1 AND task = ?2
