-- Records that an event starts work, unless it has before. ?1 event, ?2 subscription, ?3 what it starts, ?4 the job or batch, ?5 now
INSERT INTO milepost_event_work (event_id, subscription, work, work_id, started_at_ms) VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT DO NOTHING
