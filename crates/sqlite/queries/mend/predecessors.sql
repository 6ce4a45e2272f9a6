-- What the tasks of version ?1 wait for, by number.
SELECT predecessors FROM milepost_dag_task WHERE version_id = ?1 ORDER BY task
