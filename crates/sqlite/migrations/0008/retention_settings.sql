-- Retention periods that operators have set, which replace those of all configurations. keep_ms: NULL means forever. The limits are those of
-- milepost_core::retention.
CREATE TABLE milepost_retention_setting (
    name    TEXT PRIMARY KEY CHECK (typeof(name) = 'text'),
    keep_ms INTEGER CHECK (keep_ms BETWEEN 0 AND 3155760000000 AND typeof(keep_ms) IN ('integer', 'null')),
    CHECK (name <> 'audit' OR keep_ms >= 2592000000),
    CHECK (name <> 'workers' OR keep_ms >= 86400000)
) STRICT, WITHOUT ROWID;
