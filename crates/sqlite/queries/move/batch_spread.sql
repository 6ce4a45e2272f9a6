-- A page of batch_spread. ?1 how many, ?2 after this pos
SELECT pos, batch_id, task, was, state, position
FROM milepost_batch_spread WHERE pos > ?2 ORDER BY pos LIMIT ?1
