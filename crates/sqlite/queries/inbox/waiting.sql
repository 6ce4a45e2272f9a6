-- Returns the id of the event that waits with a sequence. ?1 the consumer, ?2 the type of the aggregate, ?3 its id, ?4 the sequence
SELECT event_id FROM milepost_inbox_parked WHERE consumer = ?1 AND aggregate_type = ?2 AND aggregate_id = ?3 AND aggregate_seq = ?4
UNION ALL
SELECT event_id FROM milepost_inbox_dead INDEXED BY milepost_inbox_dead_event
WHERE consumer = ?1 AND aggregate_type = ?2 AND aggregate_id = ?3 AND aggregate_seq = ?4 AND event_id IS NOT NULL AND reason = 'gap'
LIMIT 1
