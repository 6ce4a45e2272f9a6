-- Deletes events in a portion of the log that are older than ?1 and that every subscription has handled, unless they are parked or
-- dead-lettered. Returns them. ?2 after this position, ?3 how many are examined
DELETE FROM milepost_event WHERE pos IN (
    SELECT e.pos FROM (SELECT pos, event_id, emitted_at_ms FROM milepost_event WHERE pos > ?2 ORDER BY pos LIMIT ?3) e
    WHERE e.emitted_at_ms < ?1
      AND e.pos <= (SELECT coalesce(min(s.pos), 9223372036854775807) FROM milepost_subscription s)
      AND NOT EXISTS (SELECT 1 FROM milepost_parked_event p WHERE p.event_id = e.event_id)
      AND NOT EXISTS (SELECT 1 FROM milepost_dead_event d WHERE d.event_id = e.event_id)
)
RETURNING event_id
