-- The next tick of all schedules.
SELECT min(next_at_ms) FROM schedule WHERE paused_at_ms IS NULL
