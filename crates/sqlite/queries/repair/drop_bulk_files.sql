-- Deletes staged files of bulk jobs that do not exist, which retention has not reached for long. ?1 at most, ?2 now
DELETE FROM milepost_bulk_file
WHERE run IN (
    SELECT f.run FROM milepost_bulk_file f
    WHERE f.touched_at_ms < ?2 - 10800000
      AND (f.started_at_ms IS NULL OR NOT EXISTS (SELECT 1 FROM milepost_bulk b WHERE b.origin = f.run))
    LIMIT ?1
)
RETURNING run
