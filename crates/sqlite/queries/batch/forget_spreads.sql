-- Forgets what is left to be counted in batch ?1.
DELETE FROM milepost_batch_spread WHERE batch_id = ?1
