-- Aggregates whose events wait for a missing event. ?1 of this consumer or of all, ?2 to ?5 the key after which, ?6 how many
SELECT consumer, aggregate_type, aggregate_id, last_seq + 1, parked, gives_up_at_ms
FROM milepost_aggregate_checkpoint INDEXED BY milepost_aggregate_checkpoint_gap
WHERE gives_up_at_ms IS NOT NULL AND (?1 IS NULL OR consumer = ?1)
  AND (gives_up_at_ms, consumer, aggregate_type, aggregate_id) > (?2, ?3, ?4, ?5)
ORDER BY gives_up_at_ms, consumer, aggregate_type, aggregate_id
LIMIT ?6
