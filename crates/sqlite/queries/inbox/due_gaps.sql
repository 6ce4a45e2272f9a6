-- Returns aggregates whose wait for a missing event has expired. ?1 now, ?2 of this consumer or of all, ?3 how many
SELECT consumer, aggregate_type, aggregate_id FROM milepost_aggregate_checkpoint INDEXED BY milepost_aggregate_checkpoint_gap
WHERE gives_up_at_ms IS NOT NULL AND gives_up_at_ms <= ?1 AND (?2 IS NULL OR consumer = ?2)
ORDER BY gives_up_at_ms
LIMIT ?3
