-- Returns the predecessors of the tasks of version ?1, by number.
SELECT predecessors FROM milepost_dag_task WHERE version_id = ?1 ORDER BY task
