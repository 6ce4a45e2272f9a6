-- The stored retention periods in ms; NULL means forever.
SELECT name, keep_ms FROM milepost_retention_setting ORDER BY name
