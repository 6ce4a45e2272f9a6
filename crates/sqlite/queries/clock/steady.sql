-- Returns by how many milliseconds the latest noted time of ?2 or ?3 differs from now (null: none was noted), and whether the time ?4 is still to come. ?1 now
SELECT (SELECT max(until_ms) - ?1 FROM milepost_turn WHERE name IN (?2, ?3)),
       EXISTS (SELECT 1 FROM milepost_turn WHERE name = ?4 AND until_ms > ?1)
