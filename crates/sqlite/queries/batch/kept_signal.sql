-- Returns the first signal that a wait can use. ?1 batch, ?2 name
SELECT pos, id, payload FROM milepost_batch_signal INDEXED BY milepost_batch_signal_kept
WHERE batch_id = ?1 AND name = ?2 AND state = 'kept' ORDER BY pos LIMIT 1
