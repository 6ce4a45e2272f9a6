-- Returns batch ?1 with the columns of lists.
SELECT b.id, b.dag, v.number, v.version, b.key, b.state, b.stop IS NOT NULL, b.generation,
       b.waiting, b.due, b.active, b.failed, b.aborted, b.succeeded, b.skipped, b.canceled,
       b.parent_id, b.parent_task, d.key, b.items_of IS NOT NULL,
       b.nominal_at_ms, b.created_at_ms, b.updated_at_ms, b.ended_at_ms, b.nominal_zone
FROM milepost_batch b
CROSS JOIN milepost_dag_version v ON v.id = b.version_id
LEFT JOIN milepost_batch p ON p.id = b.parent_id
LEFT JOIN milepost_dag_task d ON d.version_id = p.version_id AND d.task = b.parent_task
WHERE b.id = ?1
