-- The queues that give no claims now.
SELECT name FROM milepost_queue WHERE paused_at_ms IS NOT NULL
