-- Removes the limit of a group or class. ?1 name
DELETE FROM milepost_group_limit WHERE name = ?1
