-- Returns the id of the latest version of DAG ?1.
SELECT latest FROM milepost_dag WHERE name = ?1
