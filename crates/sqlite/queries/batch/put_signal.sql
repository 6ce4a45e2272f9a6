-- Stores a signal. ?1 batch, ?2 id, ?3 name, ?4 now, ?5 payload
INSERT INTO milepost_batch_signal (batch_id, id, name, state, sent_at_ms, payload) VALUES (?1, ?2, ?3, 'kept', ?4, ?5)
