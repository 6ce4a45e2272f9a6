-- Parks an event that was published or dead-lettered. ?1 subscription, ?2 position, ?3 the payload to publish instead (NULL: the original)
INSERT INTO milepost_parked_event (subscription, aggregate_type, aggregate_id, pos, event_id, edited)
SELECT ?1, aggregate_type, aggregate_id, pos, event_id, ?3 FROM milepost_event WHERE pos = ?2
ON CONFLICT DO NOTHING
