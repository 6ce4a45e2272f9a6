-- The first of the batches that ended before ?1 and are no tasks of others.
SELECT id FROM milepost_batch INDEXED BY milepost_batch_ended
WHERE ended_at_ms < ?1 AND parent_id IS NULL ORDER BY ended_at_ms LIMIT 1
