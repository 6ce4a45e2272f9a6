-- Deletes signals of batches that do not exist, except those with unfinished jobs. ?1 at most
DELETE FROM milepost_batch_signal
WHERE batch_id IN (
    SELECT r.batch_id FROM milepost_batch_signal r
    WHERE NOT EXISTS (SELECT 1 FROM milepost_batch b WHERE b.id = r.batch_id)
      AND NOT EXISTS (SELECT 1 FROM milepost_job j CROSS JOIN milepost_live l ON l.id = j.id WHERE j.batch_id = r.batch_id)
    LIMIT ?1
)
RETURNING batch_id
