-- Deletes batch ?1.
DELETE FROM milepost_batch WHERE id = ?1
