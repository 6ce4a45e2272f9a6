-- Returns the paused queues.
SELECT name FROM milepost_queue WHERE paused_at_ms IS NOT NULL
