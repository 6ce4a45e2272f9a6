-- Blocks retention in all processes until a time. ?1 the time
UPDATE milepost_turn SET until_ms = ?1 WHERE name = 'retention'
