-- Batch ?1 is rerun.
UPDATE milepost_batch SET generation = generation + 1 WHERE id = ?1
