-- Dead letters, newest first. ?1 those of this consumer or all, ?2 those before this one, ?3 how many
SELECT pos, event_id, aggregate_type, aggregate_id, aggregate_seq, event_type, payload, headers, emitted_at_ms, consumer, seq_to, reason, why,
       dead_at_ms
FROM milepost_inbox_dead
WHERE pos < ?2 AND (?1 IS NULL OR consumer = ?1)
ORDER BY pos DESC
LIMIT ?3
