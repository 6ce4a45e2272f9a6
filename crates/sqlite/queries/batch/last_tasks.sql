-- The tasks of a version that nobody waits for. ?1 version
SELECT task FROM milepost_dag_task WHERE version_id = ?1 AND successors = '[]' ORDER BY task
