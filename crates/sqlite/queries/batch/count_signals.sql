-- Counts the signals that a batch keeps for a wait. ?1 batch, ?2 name
SELECT count(*) FROM milepost_batch_signal INDEXED BY milepost_batch_signal_kept WHERE batch_id = ?1 AND name = ?2 AND state = 'kept'
