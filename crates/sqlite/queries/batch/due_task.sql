-- What has to be worked out for a task. ?1 version, ?2 task
SELECT plain, reads, spec FROM milepost_dag_task WHERE version_id = ?1 AND task = ?2
