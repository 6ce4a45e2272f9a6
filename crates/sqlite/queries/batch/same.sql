-- Returns the batch that already exists for a request. ?1 id, ?2 DAG, ?3 key
SELECT id FROM milepost_batch WHERE id = ?1
UNION ALL
SELECT id FROM milepost_batch WHERE dag = ?2 AND key = ?3
LIMIT 1
