-- Returns aggregates of a consumer whose next event may be stored. ?1 the consumer, ?2 how many
SELECT aggregate_type, aggregate_id FROM milepost_aggregate_checkpoint INDEXED BY milepost_aggregate_checkpoint_ready
WHERE consumer = ?1 AND ready = 1
ORDER BY aggregate_type, aggregate_id
LIMIT ?2
