-- Stores the retention period of ?1: ?2 in ms, NULL means forever.
INSERT INTO milepost_retention_setting (name, keep_ms) VALUES (?1, ?2)
ON CONFLICT (name) DO UPDATE SET keep_ms = excluded.keep_ms
