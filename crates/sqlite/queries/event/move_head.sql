-- Moves an aggregate on to a sequence. ?1 its type, ?2 its id, ?3 the sequence
INSERT INTO milepost_aggregate (aggregate_type, aggregate_id, last_seq) VALUES (?1, ?2, ?3)
ON CONFLICT (aggregate_type, aggregate_id) DO UPDATE SET last_seq = excluded.last_seq
