-- Deletes parked events that come before a sequence. ?1 the consumer, ?2 the type of the aggregate, ?3 its id, ?4 the sequence
DELETE FROM milepost_inbox_parked WHERE consumer = ?1 AND aggregate_type = ?2 AND aggregate_id = ?3 AND aggregate_seq < ?4
