-- Moves a consumer past events that never arrived. ?1 the consumer, ?2 the type of the aggregate, ?3 its id, ?4 the last of them
UPDATE milepost_aggregate_checkpoint SET last_seq = ?4, ready = 1, gives_up_at_ms = NULL, last_event_id = NULL
WHERE consumer = ?1 AND aggregate_type = ?2 AND aggregate_id = ?3
