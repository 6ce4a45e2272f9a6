-- A page of dag. ?1 how many, ?2 after this name
SELECT name, latest, updated_at_ms
FROM milepost_dag WHERE name > ?2 ORDER BY name LIMIT ?1
