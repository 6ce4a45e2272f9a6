-- Returns a page of the log, oldest first. ?1 those after this position, ?2 the type of the event, ?3 how many
SELECT pos, event_id, aggregate_type, aggregate_id, aggregate_seq, event_type, payload, headers, emitted_at_ms
FROM milepost_event
WHERE pos > ?1 AND (?2 IS NULL OR event_type = ?2)
ORDER BY pos
LIMIT ?3
