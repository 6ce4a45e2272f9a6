-- A page of subscription. ?1 how many, ?2 after this name
SELECT name, made_at_ms, paused_at_ms, paused_why, pos, advanced_at_ms, token FROM milepost_subscription WHERE name > ?2 ORDER BY name LIMIT ?1
