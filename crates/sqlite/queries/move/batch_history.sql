-- A page of batch_history. ?1 how many, ?2 after this pos
SELECT pos, batch_id, at_ms, generation, task, key, job_id, verb, from_state, to_state, note
FROM milepost_batch_history WHERE pos > ?2 ORDER BY pos LIMIT ?1
