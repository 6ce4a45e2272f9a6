-- Forgets the bucket of a group: it is full, or the group has no rate. ?1 group
DELETE FROM milepost_group_bucket WHERE group_key = ?1
