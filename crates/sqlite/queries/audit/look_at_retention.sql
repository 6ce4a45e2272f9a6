-- The stored retention period of ?1.
SELECT json_object('keep_ms', keep_ms) FROM milepost_retention_setting WHERE name = ?1
