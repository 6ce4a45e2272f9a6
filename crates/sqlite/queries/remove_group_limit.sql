-- Removes the limit of a group or class, an operator's only for an operator. ?1 name, ?2 who says so
DELETE FROM milepost_group_limit WHERE name = ?1 AND (source = ?2 OR ?2 = 'operator')
