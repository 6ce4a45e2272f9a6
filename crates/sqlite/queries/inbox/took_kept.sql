-- Moves a consumer to an event that was stored. ?1 the consumer, ?2 the type of the aggregate, ?3 its id, ?4 the sequence, ?5 how many
-- parked and ?6 how many dead-lettered events were removed, ?7 now, ?8 the event's id
UPDATE milepost_aggregate_checkpoint
SET last_seq = ?4, parked = parked - ?5, dead = dead - ?6, ready = parked - ?5 + dead - ?6 > 0, gives_up_at_ms = NULL, applied_at_ms = ?7,
    last_event_id = ?8
WHERE consumer = ?1 AND aggregate_type = ?2 AND aggregate_id = ?3
