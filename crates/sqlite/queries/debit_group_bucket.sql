-- Updates when the bucket of a group is full. An existing check time is kept. ?1 group, ?2 full at
INSERT INTO milepost_group_bucket (group_key, full_at_us, look_at_us) VALUES (?1, ?2, ?2)
ON CONFLICT (group_key) DO UPDATE SET full_at_us = excluded.full_at_us
