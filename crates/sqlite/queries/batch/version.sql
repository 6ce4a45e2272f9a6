-- Returns a version by its id ?1, with the schema of its input and its content.
SELECT v.id, v.name, v.number, v.version, v.id = (SELECT latest FROM milepost_dag d WHERE d.name = v.name), v.tasks,
       v.edges, v.depth, v.created_at_ms, v.input_schema, v.canonical
FROM milepost_dag_version v WHERE v.id = ?1
