-- The ends of a task that wait to be counted, in their order. ?1 batch, ?2 task
SELECT pos, was, state, position FROM milepost_batch_spread WHERE batch_id = ?1 AND task = ?2 ORDER BY pos
