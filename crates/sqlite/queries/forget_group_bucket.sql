-- Forgets the bucket of a group: it is full or there is none, and nobody waits for his time. ?1 group
DELETE FROM milepost_group_bucket WHERE group_key = ?1
