-- Returns a batch that is, or was, a task of batch ?1.
SELECT id FROM milepost_batch WHERE parent_id = ?1 LIMIT 1
