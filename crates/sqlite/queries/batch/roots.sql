-- How many tasks of version ?1 there are, and how many of them wait for none.
SELECT count(*), count(*) FILTER (WHERE pre_cnt = 0) FROM milepost_dag_task WHERE version_id = ?1
