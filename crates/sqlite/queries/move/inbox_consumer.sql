-- A page of inbox_consumer. ?1 how many, ?2 after this consumer
SELECT consumer, gap_wait_ms, parked_max, gap_policy, begins_anywhere FROM milepost_inbox_consumer
WHERE consumer > ?2 ORDER BY consumer LIMIT ?1
