-- Deletes waits of batch ?1, ?2 at most.
DELETE FROM milepost_batch_wait WHERE batch_id = ?1 AND task IN (
    SELECT task FROM milepost_batch_wait WHERE batch_id = ?1 ORDER BY task LIMIT ?2
)
