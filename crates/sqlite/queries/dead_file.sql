-- Returns a file whose runs have all been deleted, or whose staging was interrupted more than an hour ago. ?1 now
SELECT f.run FROM milepost_bulk_file f
WHERE CASE WHEN f.started_at_ms IS NULL THEN f.touched_at_ms < ?1 - 3600000
           ELSE NOT EXISTS (SELECT 1 FROM milepost_bulk b WHERE b.origin = f.run) END
LIMIT 1
