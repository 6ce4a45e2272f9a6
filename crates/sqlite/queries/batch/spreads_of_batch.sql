-- Whether ends in a batch wait to be counted. ?1 batch
SELECT 1 FROM milepost_batch_spread WHERE batch_id = ?1 LIMIT 1
