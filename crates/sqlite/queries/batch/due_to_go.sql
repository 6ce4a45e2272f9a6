-- Counts the root batches (not tasks of other batches) that ended before a time. ?1 the time
SELECT count(*) FROM milepost_batch
WHERE ended_at_ms IS NOT NULL AND parent_id IS NULL AND ended_at_ms < ?1
