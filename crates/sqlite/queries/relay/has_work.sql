-- Whether an event has started its work. ?1 event, ?2 subscription
SELECT EXISTS (SELECT 1 FROM milepost_event_work WHERE event_id = ?1 AND subscription = ?2)
