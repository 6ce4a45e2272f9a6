-- Deletes the first staged rows of a run. ?1 run, ?2 how many at most
DELETE FROM milepost_bulk_target WHERE run = ?1 AND n IN (
    SELECT n FROM milepost_bulk_target WHERE run = ?1 ORDER BY n LIMIT ?2
)
