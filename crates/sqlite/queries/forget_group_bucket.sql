-- Deletes the bucket of a group, which is full or has no rate. ?1 group
DELETE FROM milepost_group_bucket WHERE group_key = ?1
