-- A page of schedule. ?1 how many, ?2 after this name
SELECT name, spec, time_zone, kind, queue, payload, priority, max_attempts, group_key, timeout_ms, misfire,
       misfire_max, misfire_grace_ms, source, version, paused_at_ms, next_at_ms, last_at_ms, fired, dropped,
       dag, refused_at_ms, refusal
FROM milepost_schedule WHERE name > ?2 ORDER BY name LIMIT ?1
