-- A page of dag_task. ?1 how many, ?2 and ?3 after this task of this version
SELECT version_id, task, rule, plain, pre_cnt, key, kind, queue, priority, group_key, max_attempts, timeout_ms, reads, spec,
       successors, predecessors
FROM milepost_dag_task WHERE (version_id, task) > (?2, ?3) ORDER BY version_id, task LIMIT ?1
