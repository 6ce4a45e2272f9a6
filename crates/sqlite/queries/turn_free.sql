-- Whether it is anybody's turn at retention. ?1 now
SELECT 1 FROM milepost_turn WHERE name = 'retention' AND until_ms <= ?1
