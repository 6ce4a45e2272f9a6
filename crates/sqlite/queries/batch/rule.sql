-- What decides a task, and whether nothing has to be worked out for it. ?1 version, ?2 task
SELECT rule, plain FROM milepost_dag_task WHERE version_id = ?1 AND task = ?2
