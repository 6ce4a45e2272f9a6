-- Returns a row if ended tasks of a batch wait for their successors to be counted. ?1 batch
SELECT 1 FROM milepost_batch_spread WHERE batch_id = ?1 LIMIT 1
