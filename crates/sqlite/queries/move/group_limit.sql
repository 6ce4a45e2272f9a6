-- A page of group_limit. ?1 how many, ?2 after this name
SELECT name, slots, per_second, burst, source FROM milepost_group_limit WHERE name > ?2 ORDER BY name LIMIT ?1
