-- Lets the oldest event that was kept as late, because a dead letter had its sequence, take the place of that letter, which is deleted.
-- ?1 the consumer, ?2 the type of the aggregate, ?3 its id, ?4 the sequence, ?5 why
UPDATE milepost_inbox_dead SET reason = 'gap', why = ?5
WHERE pos = (
    SELECT min(pos) FROM milepost_inbox_dead INDEXED BY milepost_inbox_dead_event
    WHERE consumer = ?1 AND aggregate_type = ?2 AND aggregate_id = ?3 AND aggregate_seq = ?4 AND event_id IS NOT NULL AND reason = 'late'
)
