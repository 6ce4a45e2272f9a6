-- Removes the limit of a group or class. ?1 name
DELETE FROM group_limit WHERE name = ?1
