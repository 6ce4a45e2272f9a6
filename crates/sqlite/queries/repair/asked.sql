-- Returns the number of tasks that batch ?1 has when it is complete.
SELECT iif(b.items_of IS NULL, v.tasks, json_array_length(i.input))
FROM milepost_batch b
LEFT JOIN milepost_dag_version v ON v.id = b.version_id
LEFT JOIN milepost_batch_input i ON i.batch_id = b.id
WHERE b.id = ?1
