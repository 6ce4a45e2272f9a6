-- Deletes what is recorded about the work of an event that was deleted. ?1 event
DELETE FROM milepost_event_work WHERE event_id = ?1
