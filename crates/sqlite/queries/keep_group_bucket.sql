-- Stores when the bucket of a group is full and when to check the group again. ?1 group, ?2 full at, ?3 check at
INSERT INTO milepost_group_bucket (group_key, full_at_us, look_at_us) VALUES (?1, ?2, ?3)
ON CONFLICT (group_key) DO UPDATE SET full_at_us = excluded.full_at_us, look_at_us = excluded.look_at_us
