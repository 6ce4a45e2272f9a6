-- Stores what a task waits for. ?1 batch, ?2 task, ?3 signal or NULL, ?4 now, ?5 until or NULL, ?6 the state after that time
INSERT OR REPLACE INTO milepost_batch_wait (batch_id, task, signal, since_ms, until_ms, on_timeout, check_at_ms)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?4)
