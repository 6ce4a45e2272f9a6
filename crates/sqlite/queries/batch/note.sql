-- Adds a history entry. ?1 batch, ?2 now, ?3 generation, ?4 task or NULL, ?5 verb, ?6 from, ?7 to, ?8 note, ?9 the key of a task that no
-- longer exists, ?10 the job that was detached
INSERT INTO milepost_batch_history (batch_id, at_ms, generation, task, verb, from_state, to_state, note, key, job_id)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
