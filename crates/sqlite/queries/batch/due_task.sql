-- Returns the part of a task's definition that is evaluated before it starts. ?1 version, ?2 task
SELECT plain, reads, spec FROM milepost_dag_task WHERE version_id = ?1 AND task = ?2
