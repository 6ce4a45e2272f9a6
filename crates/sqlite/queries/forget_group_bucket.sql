-- Forgets the bucket of a group: it is full, or the group has no rate. ?1 group
DELETE FROM group_bucket WHERE group_key = ?1
