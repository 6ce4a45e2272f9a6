-- Stores the retention period of $1: $2 in ms, null means forever.
insert into milepost.retention_setting (name, keep_ms) values ($1, $2)
on conflict (name) do update set keep_ms = excluded.keep_ms
returning name
