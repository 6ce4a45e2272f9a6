-- A page of event_work. ?1 how many, ?2 after this subscription, ?3 and event
SELECT event_id, subscription, work, work_id, started_at_ms FROM milepost_event_work
WHERE (event_id, subscription) > (?3, ?2) ORDER BY event_id, subscription LIMIT ?1
