-- Moves a schedule on, if it still has this version.
-- ?1 name, ?2 version, ?3 next tick, ?4 last tick that made a job, ?5 how many jobs, ?6 how many ticks were dropped
UPDATE milepost_schedule
SET next_at_ms = ?3, last_at_ms = coalesce(?4, last_at_ms), fired = fired + ?5, dropped = dropped + ?6,
    version = version + 1
WHERE name = ?1 AND version = ?2 AND paused_at_ms IS NULL
