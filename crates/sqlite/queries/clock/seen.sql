-- Returns by how many milliseconds the latest noted time differs from now: more than 0 after the clock was set back. ?1 now, ?2 whose note: of
-- workers or of publishers
SELECT until_ms - ?1 FROM milepost_turn WHERE name = ?2
