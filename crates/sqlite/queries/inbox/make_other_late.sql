-- Marks a dead letter whose sequence another event has as late: it can no longer follow. ?1 the consumer, ?2 the type of the aggregate, ?3 its id, ?4 the
-- sequence, ?5 the id of the other event, ?6 why
UPDATE milepost_inbox_dead SET reason = 'late', why = ?6
WHERE consumer = ?1 AND aggregate_type = ?2 AND aggregate_id = ?3 AND aggregate_seq = ?4 AND event_id IS NOT NULL AND reason = 'gap' AND event_id <> ?5
