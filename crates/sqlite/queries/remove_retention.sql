-- Removes the stored retention period of ?1.
DELETE FROM milepost_retention_setting WHERE name = ?1
