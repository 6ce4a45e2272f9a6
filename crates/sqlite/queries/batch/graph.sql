-- Returns the tasks of version ?1, with the tasks that wait for them.
SELECT task, rule, pre_cnt, successors FROM milepost_dag_task WHERE version_id = ?1 ORDER BY task
