-- The stored retention period of $1.
select jsonb_build_object('keep_ms', keep_ms)::text from milepost.retention_setting where name = $1
