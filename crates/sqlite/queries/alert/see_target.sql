-- Records that a server has the target ?1. Returns the number of failed messages, and whether a message may be claimed now (?2): if
-- the last one was sent before ?3.
INSERT INTO milepost_alert_target (name, seen_at_ms) VALUES (?1, ?2)
ON CONFLICT (name) DO UPDATE SET seen_at_ms = max(seen_at_ms, excluded.seen_at_ms)
RETURNING failures, coalesce(claimed_until_ms <= ?2, 1) AND coalesce(next_at_ms <= ?2, 1) AND coalesce(sent_at_ms <= ?3, 1)
