-- Returns the root batch (not a task of another batch) that ended first before ?1.
SELECT id FROM milepost_batch INDEXED BY milepost_batch_ended
WHERE ended_at_ms < ?1 AND parent_id IS NULL ORDER BY ended_at_ms LIMIT 1
