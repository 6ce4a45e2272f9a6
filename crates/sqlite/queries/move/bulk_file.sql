-- A page of bulk_file. ?1 how many, ?2 after this run
SELECT run, name, rows, started_at_ms, touched_at_ms
FROM milepost_bulk_file WHERE run > ?2 ORDER BY run LIMIT ?1
