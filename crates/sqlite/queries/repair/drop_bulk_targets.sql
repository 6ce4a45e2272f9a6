-- Deletes staged rows without a file. ?1 at most
DELETE FROM milepost_bulk_target
WHERE (run, n) IN (
    SELECT t.run, t.n FROM milepost_bulk_target t
    WHERE NOT EXISTS (SELECT 1 FROM milepost_bulk_file f WHERE f.run = t.run) LIMIT ?1
)
RETURNING run
