-- A page of batch_wait. ?1 how many, ?2 and ?3 after this task of this batch
SELECT batch_id, task, signal, since_ms, until_ms, on_timeout, check_at_ms, output
FROM milepost_batch_wait WHERE (batch_id, task) > (?2, ?3) ORDER BY batch_id, task LIMIT ?1
