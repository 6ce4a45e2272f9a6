-- Records events that never arrived. ?1 the consumer, ?2 the type of the aggregate, ?3 its id, ?4 the first, ?5 the last, ?6 why, ?7 now
INSERT INTO milepost_inbox_dead (consumer, aggregate_type, aggregate_id, aggregate_seq, seq_to, reason, why, dead_at_ms)
VALUES (?1, ?2, ?3, ?4, ?5, 'never_came', ?6, ?7)
