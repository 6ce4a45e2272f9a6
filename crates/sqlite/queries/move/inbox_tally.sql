-- A page of inbox_tally. ?1 how many, ?2 after this consumer
SELECT consumer, duplicates FROM milepost_inbox_tally WHERE consumer > ?2 ORDER BY consumer LIMIT ?1
