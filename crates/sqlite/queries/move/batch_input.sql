-- A page of batch_input. ?1 how many, ?2 after this batch
SELECT batch_id, input
FROM milepost_batch_input WHERE batch_id > ?2 ORDER BY batch_id LIMIT ?1
