-- A page of batch_task. ?1 how many, ?2 and ?3 after this task of this batch
SELECT batch_id, task, generation, state, job_id, child_id, pre_cnt, succeeded, failed, skipped, canceled
FROM milepost_batch_task WHERE (batch_id, task) > (?2, ?3) ORDER BY batch_id, task LIMIT ?1
