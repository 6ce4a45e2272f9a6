-- Removes an event from the dead-lettered ones. ?1 subscription, ?2 the event
DELETE FROM milepost_dead_event WHERE subscription = ?1 AND event_id = ?2 RETURNING pos, edited
