-- Lets retention continue that waits until a time of the clock before it was set back. ?1 now, ?2 by how many milliseconds
UPDATE milepost_turn SET until_ms = max(?1, until_ms - ?2) WHERE name IN ('retention', 'deletion') AND until_ms > ?1
