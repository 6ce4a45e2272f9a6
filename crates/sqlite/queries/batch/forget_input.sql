-- Deletes the input of batch ?1.
DELETE FROM milepost_batch_input WHERE batch_id = ?1
