-- Retention periods that operators have set, which replace those of all configurations. keep_ms: null means forever. The limits are those of
-- milepost_core::retention.
create table milepost.retention_setting (
    name text primary key,
    keep_ms bigint check (keep_ms between 0 and 3155760000000),
    check (name <> 'audit' or keep_ms >= 2592000000),
    check (name <> 'workers' or keep_ms >= 86400000)
);
