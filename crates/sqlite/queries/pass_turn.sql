-- Lets nobody take the turn at retention before a time. ?1 the time
UPDATE milepost_turn SET until_ms = ?1 WHERE name = 'retention'
