-- Stages row ?3 (JSON) of run ?1 with number ?2.
INSERT INTO milepost_bulk_target (run, n, row) VALUES (?1, ?2, ?3)
