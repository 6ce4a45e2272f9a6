-- A page of group_bucket. ?1 how many, ?2 after this group
SELECT group_key, full_at_us, look_at_us, reserved FROM milepost_group_bucket WHERE group_key > ?2 ORDER BY group_key LIMIT ?1
