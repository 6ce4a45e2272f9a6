-- Stores when the bucket of a group is full, how many starts are reserved, and when to check the group again.
-- ?1 group, ?2 full at, ?3 reserved, ?4 check at
INSERT INTO milepost_group_bucket (group_key, full_at_us, reserved, look_at_us) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (group_key) DO UPDATE SET full_at_us = excluded.full_at_us, reserved = excluded.reserved, look_at_us = excluded.look_at_us
