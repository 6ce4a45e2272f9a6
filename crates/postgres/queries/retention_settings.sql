-- The stored retention periods in ms; null means forever.
select name, keep_ms from milepost.retention_setting order by name
