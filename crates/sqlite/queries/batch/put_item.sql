-- Stores item ?2 of batch ?1.
INSERT INTO milepost_batch_task (batch_id, task, pre_cnt, state) VALUES (?1, ?2, 0, 'due')
