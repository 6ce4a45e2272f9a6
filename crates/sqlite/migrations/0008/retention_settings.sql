-- Retention periods that operators have set, which replace those of all configurations. keep_ms: NULL means forever.
CREATE TABLE milepost_retention_setting (
    name    TEXT PRIMARY KEY CHECK (typeof(name) = 'text'),
    keep_ms INTEGER CHECK (keep_ms >= 0 AND typeof(keep_ms) IN ('integer', 'null'))
) STRICT, WITHOUT ROWID;
