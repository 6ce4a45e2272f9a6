-- Returns the input of a batch. ?1 batch
SELECT input FROM milepost_batch_input WHERE batch_id = ?1
