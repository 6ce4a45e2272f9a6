-- Returns the ended tasks' entries of one task that wait for their successors to be counted, in order. ?1 batch, ?2 task
SELECT pos, was, state, position FROM milepost_batch_spread WHERE batch_id = ?1 AND task = ?2 ORDER BY pos
