-- Returns a row if any process may run retention now. ?1 now
SELECT 1 FROM milepost_turn WHERE name = 'retention' AND until_ms <= ?1
