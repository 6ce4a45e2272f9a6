-- Schedules by name. ?1 only this one, ?2 only those due at this time, longest due first (NULL: any), ?3 how many,
-- ?4 only those after this name, ?5 whether payloads are read (else they are null)
SELECT name, spec, time_zone, kind, queue, iif(?5, payload, 'null'), priority, max_attempts, group_key, timeout_ms,
       misfire, misfire_max, misfire_grace_ms, source, version, paused_at_ms, next_at_ms, last_at_ms, fired, dropped,
       dag, refused_at_ms, refusal
FROM milepost_schedule
WHERE (?1 IS NULL OR name = ?1) AND (?4 IS NULL OR name > ?4) AND (?2 IS NULL OR (paused_at_ms IS NULL AND next_at_ms <= ?2))
ORDER BY CASE WHEN ?2 IS NOT NULL THEN next_at_ms END, name
LIMIT ?3
