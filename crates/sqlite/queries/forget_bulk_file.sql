-- Deletes the file of a run. ?1 run
DELETE FROM milepost_bulk_file WHERE run = ?1
