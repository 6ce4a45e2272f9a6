-- What a dead letter is about. ?1 its id
SELECT consumer, aggregate_type, aggregate_id, reason FROM milepost_inbox_dead WHERE pos = ?1
