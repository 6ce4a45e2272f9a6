-- The tasks of version ?1, and what waits for them.
SELECT task, rule, pre_cnt, successors FROM milepost_dag_task WHERE version_id = ?1 ORDER BY task
