-- Sets the last sequence number of an aggregate. ?1 its type, ?2 its id, ?3 the sequence number
INSERT INTO milepost_aggregate (aggregate_type, aggregate_id, last_seq) VALUES (?1, ?2, ?3)
ON CONFLICT (aggregate_type, aggregate_id) DO UPDATE SET last_seq = excluded.last_seq
