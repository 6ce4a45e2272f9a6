-- Where a portion of the log ends, if all in it is old. ?1 how old that is, ?2 after this position, ?3 how many
SELECT CASE WHEN count(*) = ?3 AND max(emitted_at_ms) < ?1 THEN max(pos) END
FROM (SELECT pos, emitted_at_ms FROM milepost_event WHERE pos > ?2 ORDER BY pos LIMIT ?3)
