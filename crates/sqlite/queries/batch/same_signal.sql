-- Returns a row if the batch has a signal with this id. ?1 batch, ?2 id
SELECT 1 FROM milepost_batch_signal WHERE batch_id = ?1 AND id = ?2
