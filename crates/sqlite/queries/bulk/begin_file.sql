-- Creates file ?2 (display name) of run ?1, at ?3.
INSERT INTO milepost_bulk_file (run, name, touched_at_ms) VALUES (?1, ?2, ?3)
