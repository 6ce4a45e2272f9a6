-- Counts the signals of a batch. ?1 batch
SELECT count(*) FROM milepost_batch_signal WHERE batch_id = ?1
