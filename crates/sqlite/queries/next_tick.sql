-- Returns the next tick of all schedules.
SELECT min(next_at_ms) FROM milepost_schedule WHERE paused_at_ms IS NULL
