-- Returns the last history entries of batch ?1 and of its tasks without jobs, newest first; ?2 how many.
SELECT h.pos, h.at_ms, h.generation, h.task, coalesce(d.key, h.key, CAST(h.task AS TEXT)), h.verb,
       h.from_state, h.to_state, h.note, h.job_id
FROM milepost_batch_history h INDEXED BY milepost_batch_history_batch
CROSS JOIN milepost_batch b ON b.id = h.batch_id
LEFT JOIN milepost_dag_task d ON d.version_id = b.version_id AND d.task = h.task AND b.items_of IS NULL
WHERE h.batch_id = ?1
ORDER BY h.pos DESC
LIMIT ?2
