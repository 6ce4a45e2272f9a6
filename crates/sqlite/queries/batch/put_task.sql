-- Stores a task of version ?1.
INSERT INTO milepost_dag_task (version_id, task, rule, plain, pre_cnt, key, kind, queue, priority, group_key, max_attempts,
                               timeout_ms, reads, spec, successors, predecessors)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)
