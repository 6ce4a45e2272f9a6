-- Deletes dead-lettered events that are not in the log at their positions. ?1 at most
DELETE FROM milepost_dead_event
WHERE (subscription, event_id) IN (
    SELECT h.subscription, h.event_id FROM milepost_dead_event h
    WHERE NOT EXISTS (SELECT 1 FROM milepost_event e WHERE e.pos = h.pos AND e.event_id = h.event_id)
    LIMIT ?1
)
RETURNING event_id
