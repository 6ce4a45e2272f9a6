-- Retention periods that operators have set, which replace those of all configurations. keep_ms: null means forever.
create table milepost.retention_setting (
    name text primary key,
    keep_ms bigint check (keep_ms >= 0)
);
