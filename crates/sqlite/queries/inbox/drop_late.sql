-- Deletes the dead letter of an event that is processed after it was kept as late. ?1 the consumer, ?2 the type of the aggregate, ?3 its id, ?4 the sequence,
-- ?5 the event's id
DELETE FROM milepost_inbox_dead
WHERE consumer = ?1 AND aggregate_type = ?2 AND aggregate_id = ?3 AND aggregate_seq = ?4 AND event_id = ?5 AND reason = 'late'
