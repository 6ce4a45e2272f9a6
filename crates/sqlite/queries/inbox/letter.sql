-- Returns the consumer, the aggregate, the reason and the first sequence of a dead letter. ?1 its id
SELECT consumer, aggregate_type, aggregate_id, reason, aggregate_seq FROM milepost_inbox_dead WHERE pos = ?1
