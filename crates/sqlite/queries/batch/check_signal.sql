-- Has the wait for a signal checked now. ?1 batch, ?2 signal, ?3 now
UPDATE milepost_batch_wait SET check_at_ms = ?3 WHERE batch_id = ?1 AND signal = ?2
