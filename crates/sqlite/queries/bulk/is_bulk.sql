-- Returns whether kind ?1 is a bulk job.
SELECT EXISTS (SELECT 1 FROM milepost_bulk_definition WHERE name = ?1)
