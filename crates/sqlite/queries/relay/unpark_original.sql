-- Unparks an event, unless an operator has given it another payload. ?1 subscription, ?2 type of the aggregate, ?3 its id, ?4 the event's id
DELETE FROM milepost_parked_event
WHERE subscription = ?1 AND aggregate_type = ?2 AND aggregate_id = ?3 AND event_id = ?4 AND edited IS NULL
