-- Sets a consumer's position in an aggregate. ?1 the consumer, ?2 the type of the aggregate, ?3 its id, ?4 the sequence
INSERT INTO milepost_aggregate_checkpoint (consumer, aggregate_type, aggregate_id, last_seq) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (consumer, aggregate_type, aggregate_id) DO UPDATE SET last_seq = excluded.last_seq
