-- Counts a duplicate. ?1 the consumer
INSERT INTO milepost_inbox_tally (consumer, duplicates) VALUES (?1, 1)
ON CONFLICT (consumer) DO UPDATE SET duplicates = duplicates + 1
