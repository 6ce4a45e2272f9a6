-- Counts the taken slots of a group. ?1 group
SELECT count(*) FROM milepost_group_slot WHERE group_key = ?1
