-- Counts the tasks of version ?1, and those of them without predecessors.
SELECT count(*), count(*) FILTER (WHERE pre_cnt = 0) FROM milepost_dag_task WHERE version_id = ?1
