-- Tasks of batch ?1, ?2 at most.
SELECT task FROM milepost_batch_task WHERE batch_id = ?1 ORDER BY task LIMIT ?2
