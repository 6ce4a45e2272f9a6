-- Returns the job options of a task. ?1 version, ?2 task
SELECT kind, queue, priority, group_key, max_attempts, timeout_ms, coalesce(spec -> '$.payload', '{}')
FROM milepost_dag_task WHERE version_id = ?1 AND task = ?2
