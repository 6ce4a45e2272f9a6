-- Returns a row if an event is kept as late. ?1 the consumer, ?2 the type of the aggregate, ?3 its id, ?4 the sequence, ?5 the event's id
SELECT 1 FROM milepost_inbox_dead INDEXED BY milepost_inbox_dead_event
WHERE consumer = ?1 AND aggregate_type = ?2 AND aggregate_id = ?3 AND aggregate_seq = ?4 AND event_id = ?5 AND reason = 'late'
