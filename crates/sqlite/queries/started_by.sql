-- Returns the event that started a job. ?1 job
SELECT event_id, subscription FROM milepost_event_work WHERE work_id = ?1 ORDER BY started_at_ms, event_id LIMIT 1
