-- Batches with tasks that are due. ?1 how many
SELECT id FROM milepost_batch INDEXED BY milepost_batch_due WHERE due > 0 AND stop IS NULL LIMIT ?1
