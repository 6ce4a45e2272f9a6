-- Removes the limit of a group or class; only an operator can remove an operator's. ?1 name, ?2 source
DELETE FROM milepost_group_limit WHERE name = ?1 AND (source = ?2 OR ?2 = 'operator')
