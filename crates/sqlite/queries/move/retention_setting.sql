-- A page of retention_setting. ?1 how many, ?2 after this name
SELECT name, keep_ms FROM milepost_retention_setting WHERE name > ?2 ORDER BY name LIMIT ?1
