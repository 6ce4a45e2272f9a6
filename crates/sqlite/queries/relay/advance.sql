-- Sets the position of a subscription. ?1 its name, ?2 the token, ?3 the position, ?4 now
UPDATE milepost_subscription SET pos = ?3, advanced_at_ms = ?4 WHERE name = ?1 AND token = ?2
