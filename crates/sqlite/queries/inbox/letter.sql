-- Returns the consumer, the aggregate and the reason of a dead letter. ?1 its id
SELECT consumer, aggregate_type, aggregate_id, reason FROM milepost_inbox_dead WHERE pos = ?1
