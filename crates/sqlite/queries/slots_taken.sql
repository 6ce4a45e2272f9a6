-- How many slots of a group are taken. ?1 group
SELECT count(*) FROM milepost_group_slot WHERE group_key = ?1
