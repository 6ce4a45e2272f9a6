-- Returns the id of the version of DAG ?1 with the content ?2.
SELECT id FROM milepost_dag_version WHERE name = ?1 AND version = ?2
