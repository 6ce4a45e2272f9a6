-- Deletes the ended tasks of batch ?1 whose successors have not all been counted.
DELETE FROM milepost_batch_spread WHERE batch_id = ?1
