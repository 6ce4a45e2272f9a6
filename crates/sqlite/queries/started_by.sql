-- Returns the event that started a job or a batch. ?1 its id
SELECT event_id, subscription FROM milepost_event_work WHERE work_id = ?1 AND work <> 'signal' ORDER BY started_at_ms, event_id LIMIT 1
