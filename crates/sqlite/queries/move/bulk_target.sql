-- A page of bulk_target. ?1 how many, ?2 and ?3 after this row of this run
SELECT run, n, row
FROM milepost_bulk_target WHERE (run, n) > (?2, ?3) ORDER BY run, n LIMIT ?1
