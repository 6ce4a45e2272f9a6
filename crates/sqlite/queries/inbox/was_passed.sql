-- Returns a row if a consumer skipped an event. ?1 the consumer, ?2 the type of the aggregate, ?3 its id, ?4 the sequence
SELECT 1 FROM milepost_inbox_dead INDEXED BY milepost_inbox_dead_gap
WHERE consumer = ?1 AND aggregate_type = ?2 AND aggregate_id = ?3 AND aggregate_seq <= ?4 AND seq_to >= ?4 AND event_id IS NULL
