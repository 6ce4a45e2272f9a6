-- A page of aggregate_checkpoint. ?1 how many, ?2 after this consumer, ?3 type of aggregate, ?4 and id
SELECT consumer, aggregate_type, aggregate_id, last_seq, parked, dead, ready, gives_up_at_ms FROM milepost_aggregate_checkpoint
WHERE (consumer, aggregate_type, aggregate_id) > (?2, ?3, ?4) ORDER BY consumer, aggregate_type, aggregate_id LIMIT ?1
