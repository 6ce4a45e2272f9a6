-- A page of dag_version. ?1 how many, ?2 after this id
SELECT id, name, number, version, tasks, edges, depth, created_at_ms, input_schema, canonical
FROM milepost_dag_version WHERE id > ?2 ORDER BY id LIMIT ?1
