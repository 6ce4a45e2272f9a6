-- Returns the limit of group or class ?1.
SELECT json_object('slots', slots, 'per_second', per_second, 'burst', burst, 'source', source)
FROM milepost_group_limit WHERE name = ?1
