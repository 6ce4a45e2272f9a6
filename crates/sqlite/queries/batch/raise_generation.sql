-- Starts the next generation of batch ?1, for a rerun.
UPDATE milepost_batch SET generation = generation + 1 WHERE id = ?1
