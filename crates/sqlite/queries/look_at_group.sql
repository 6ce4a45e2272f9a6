-- Has a group looked at when a job of it becomes due. ?1 group, ?2 when
INSERT INTO milepost_group_bucket (group_key, full_at_us, look_at_us) VALUES (?1, 0, ?2)
ON CONFLICT (group_key) DO UPDATE SET look_at_us = min(coalesce(look_at_us, ?2), ?2)
