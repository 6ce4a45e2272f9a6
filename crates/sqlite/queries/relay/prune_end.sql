-- Returns the last position of a portion of the log if all events in it are old, otherwise NULL. ?1 old: before this time, ?2 after this
-- position, ?3 how many
SELECT CASE WHEN count(*) = ?3 AND max(emitted_at_ms) < ?1 THEN max(pos) END
FROM (SELECT pos, emitted_at_ms FROM milepost_event WHERE pos > ?2 ORDER BY pos LIMIT ?3)
