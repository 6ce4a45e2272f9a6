-- Deletes parked events that are not in the log at their positions. ?1 at most
DELETE FROM milepost_parked_event
WHERE (subscription, aggregate_type, aggregate_id, pos) IN (
    SELECT h.subscription, h.aggregate_type, h.aggregate_id, h.pos FROM milepost_parked_event h
    WHERE NOT EXISTS (SELECT 1 FROM milepost_event e WHERE e.pos = h.pos AND e.event_id = h.event_id)
    LIMIT ?1
)
RETURNING event_id
