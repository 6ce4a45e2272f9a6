-- Removes definition ?1 if it comes from a configuration.
DELETE FROM milepost_bulk_definition WHERE name = ?1 AND source = 'config'
