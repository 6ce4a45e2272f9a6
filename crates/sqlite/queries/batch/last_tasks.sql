-- Returns the tasks of a version that have no successors. ?1 version
SELECT task FROM milepost_dag_task WHERE version_id = ?1 AND successors = '[]' ORDER BY task
