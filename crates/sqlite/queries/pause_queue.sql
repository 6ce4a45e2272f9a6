-- Pauses a queue. ?1 queue, ?2 now
INSERT INTO milepost_queue (name, paused_at_ms) VALUES (?1, ?2)
ON CONFLICT (name) DO UPDATE SET paused_at_ms = excluded.paused_at_ms WHERE paused_at_ms IS NULL
