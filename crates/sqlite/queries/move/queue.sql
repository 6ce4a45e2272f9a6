-- A page of queue. ?1 how many, ?2 after this name
SELECT name, paused_at_ms FROM milepost_queue WHERE name > ?2 ORDER BY name LIMIT ?1
