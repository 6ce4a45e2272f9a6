-- Stores a version of DAG ?1: ?2 hash of its content, ?3 tasks, ?4 edges, ?5 depth, ?6 now, ?7 schema of its input, ?8 canonical form
INSERT INTO milepost_dag_version (name, number, version, tasks, edges, depth, created_at_ms, input_schema, canonical)
VALUES (?1, (SELECT coalesce(max(number), 0) + 1 FROM milepost_dag_version WHERE name = ?1), ?2, ?3, ?4, ?5, ?6, ?7, ?8)
RETURNING id
