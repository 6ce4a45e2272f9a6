-- Recomputes the counters of an aggregate, whether its next event is stored, and the deadline of the others. ?1 the consumer, ?2 the type
-- of the aggregate, ?3 its id, ?4 how long events wait
UPDATE milepost_aggregate_checkpoint AS c
SET parked = f.parked, dead = f.dead, ready = f.follows,
    gives_up_at_ms = CASE WHEN f.parked > 0 AND NOT f.follows THEN f.oldest_ms + ?4 END
FROM (
    SELECT (SELECT count(*) FROM milepost_inbox_parked
            WHERE consumer = ?1 AND aggregate_type = ?2 AND aggregate_id = ?3) AS parked,
           (SELECT min(parked_at_ms) FROM milepost_inbox_parked
            WHERE consumer = ?1 AND aggregate_type = ?2 AND aggregate_id = ?3) AS oldest_ms,
           (SELECT count(*) FROM milepost_inbox_dead INDEXED BY milepost_inbox_dead_event
            WHERE consumer = ?1 AND aggregate_type = ?2 AND aggregate_id = ?3 AND event_id IS NOT NULL AND reason = 'gap') AS dead,
           EXISTS (SELECT 1 FROM milepost_inbox_parked
                   WHERE consumer = ?1 AND aggregate_type = ?2 AND aggregate_id = ?3 AND aggregate_seq = k.last_seq + 1)
           OR EXISTS (SELECT 1 FROM milepost_inbox_dead INDEXED BY milepost_inbox_dead_event
                      WHERE consumer = ?1 AND aggregate_type = ?2 AND aggregate_id = ?3 AND aggregate_seq = k.last_seq + 1
                        AND event_id IS NOT NULL AND reason = 'gap') AS follows
    FROM milepost_aggregate_checkpoint k
    WHERE k.consumer = ?1 AND k.aggregate_type = ?2 AND k.aggregate_id = ?3
) AS f
WHERE c.consumer = ?1 AND c.aggregate_type = ?2 AND c.aggregate_id = ?3
