-- A page of batch_signal. ?1 how many, ?2 after this pos
SELECT pos, batch_id, id, name, state, sent_at_ms, payload
FROM milepost_batch_signal WHERE pos > ?2 ORDER BY pos LIMIT ?1
