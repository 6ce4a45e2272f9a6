-- Returns a page of the events of an aggregate, newest first. ?1 those before this position, ?2 the type of the event, ?3 how many,
-- ?4 the type of the aggregate, ?5 its id
SELECT pos, event_id, aggregate_type, aggregate_id, aggregate_seq, event_type, payload, headers, emitted_at_ms
FROM milepost_event
WHERE aggregate_type = ?4 AND aggregate_id = ?5 AND pos < ?1 AND (?2 IS NULL OR event_type = ?2)
ORDER BY aggregate_seq DESC
LIMIT ?3
